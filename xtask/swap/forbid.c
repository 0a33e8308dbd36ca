/* Runs a program that may not change code.
 *
 *   forbid writing PROGRAM…     memory that was written cannot be made executable
 *   forbid restoring PROGRAM…   small pieces can, and large ones not, so that what is found out late is
 *                               found out when code has been changed already
 *   forbid mapping PROGRAM…     the same, and code cannot be read from its file again; the linker's own
 *                               mappings of code have another flag */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SMALL (4 * 4096)

static int install(struct sock_filter *filter, unsigned short length) {
  struct sock_fprog program = {length, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int forbid_restoring(void) {
  struct sock_filter filter[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 5),
      LOAD(args[2]),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 3),
      LOAD(args[1]),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SMALL, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter, sizeof filter / sizeof *filter);
}

static int forbid_mapping(void) {
  struct sock_filter filter[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
      LOAD(args[2]),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 3),
      LOAD(args[3]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAP_PRIVATE | MAP_FIXED, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter, sizeof filter / sizeof *filter);
}

static int forbid(const char *what) {
  if (strcmp(what, "writing") == 0) return prctl(PR_SET_MDWE, 1, 0, 0, 0);
  if (strcmp(what, "mapping") == 0 && forbid_mapping() != 0) return -1;
  return forbid_restoring();
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  if (forbid(arguments[1]) != 0) return 77;
  execvp(arguments[2], arguments + 2);
  perror(arguments[2]);
  return 1;
}
