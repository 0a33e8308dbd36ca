/* Preloaded into the guide's programs in Rust. It notes when each line is printed, and stops the process
 * before its loop is torn down, so that somebody may read what was recorded.
 *
 * Such a program has the loop inside of itself, where nothing can be put in the place of a function. So the
 * function that tears a loop down, which GUIDE_STOP_AT names by its place in the executable, gets a breakpoint. */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define BREAKPOINT 0xcc

static FILE* stamps;
static unsigned char *place, first;

ssize_t write(int fd, const void* bytes, size_t count) {
  ssize_t (*next)(int, const void*, size_t);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *(void**) &next = dlsym(RTLD_NEXT, "write");
  ssize_t written = next(fd, bytes, count);
  const char* end = written > 0 && fd == STDOUT_FILENO ? (const char*) bytes + written : bytes;
  for (const char* at = bytes; (at = memchr(at, '\n', end - at)) != NULL; at++)
    fprintf(stamps, "%lld\n", now.tv_sec * 1000000000ll + now.tv_nsec);
  return written;
}

static void on_breakpoint(int number, siginfo_t* info, void* context) {
  (void) number, (void) info;
  fflush(stamps);
  raise(SIGSTOP);
  *place = first;
  ((ucontext_t*) context)->uc_mcontext.gregs[REG_RIP] = (greg_t) place;
}

/* The first object is the program's own. */
static int own_base(struct dl_phdr_info* info, size_t size, void* base) {
  (void) size;
  *(ElfW(Addr)*) base = info->dlpi_addr;
  return 1;
}

__attribute__((constructor)) static void begin(void) {
  ElfW(Addr) base = 0;
  struct sigaction action = {.sa_sigaction = on_breakpoint, .sa_flags = SA_SIGINFO};
  const char* stop_at = getenv("GUIDE_STOP_AT");
  size_t page = sysconf(_SC_PAGESIZE);
  stamps = fopen(getenv("GUIDE_STAMPS"), "w");
  if (stamps == NULL || stop_at == NULL)
    abort();
  dl_iterate_phdr(own_base, &base);
  place = (unsigned char*) base + strtoull(stop_at, NULL, 10);
  first = *place;
  void* begin = place - (size_t) place % page;
  if (mprotect(begin, page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 || sigaction(SIGTRAP, &action, NULL) != 0)
    abort();
  *place = BREAKPOINT;
}
