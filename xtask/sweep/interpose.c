/* Stands between libuv.so.1 and the C library: the entries of the library's global offset table are
 * replaced by wrappers that count each call and fail a chosen one. The program and the C library itself
 * keep their own bindings, so nothing but the library's calls is counted, those of threads and of
 * children included: the counters are in shared memory. */
#include "sweep.h"
#include "calls.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fnmatch.h>
#include <link.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* Waits are repeated as often as time allows; of those only the first are cases. */
#define MOST_WAITS 12

enum id {
#define F(name) CALL_##name,
  FAILABLE(F)
#undef F
  CALLS
};
static const char* const names[] = {
#define F(name) #name,
  FAILABLE(F)
#undef F
};
typedef long (*function)(long, long, long, long, long, long, long);
static function real[CALLS];

static struct shared {
  atomic_int seen[COUNT(rules)];
  int rule, number, error; /* the call to fail; no rule: none */
  int make_short, lasts;
  atomic_int hit;
} * shared;

static const struct { const char* name; int value; } errors[] = {
#define E(name) { #name, name },
  E(EACCES) E(EADDRINUSE) E(EADDRNOTAVAIL) E(EAFNOSUPPORT) E(EAGAIN) E(EBUSY) E(ECONNABORTED)
  E(ECONNREFUSED) E(ECONNRESET) E(EDQUOT) E(EEXIST) E(EFAULT) E(EINTR) E(EINVAL) E(EIO) E(EMFILE)
  E(ENAMETOOLONG) E(ENETUNREACH) E(ENFILE) E(ENOBUFS) E(ENODEV) E(ENOENT) E(ENOMEM)
  E(ENOPROTOOPT) E(ENOSPC) E(ENOSYS) E(ENOTCONN) E(ENOTTY) E(ENXIO) E(EOPNOTSUPP) E(EOVERFLOW) E(EPERM)
  E(EPIPE) E(ERANGE) E(EROFS) E(ESPIPE) E(ESRCH) E(ETIMEDOUT) E(ETXTBSY) E(EXDEV) E(EAI_AGAIN) E(EAI_FAIL)
  E(EAI_MEMORY) E(EAI_SYSTEM)
#undef E
};

/* What epoll was last told about each descriptor, to repeat it: see `again`. */
static struct { int epoll; struct epoll_event event; } registered[1024];

static int rule_named(const char* name) {
  for (size_t at = 0; at < COUNT(rules); at++)
    if (strcmp(rules[at].call, name) == 0) return (int) at;
  return -1;
}

static const char* message_kind(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
  return type == SOCK_STREAM ? "stream" : "datagram";
}

static const char* descriptor_kind(int fd) {
  struct stat about;
  char link[64], target[64] = "";
  if (fstat(fd, &about) != 0) return "other";
  switch (about.st_mode & S_IFMT) {
  case S_IFREG: return "file";
  case S_IFSOCK: return "socket";
  case S_IFIFO: return "pipe";
  case S_IFCHR: return isatty(fd) ? "tty" : "device";
  }
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, target, sizeof target - 1) <= 0) return "other";
  return strstr(target, "eventfd") ? "event" : strstr(target, "inotify") ? "inotify" : "other";
}

static int rule_of(enum id id, const long* arg) {
  char name[64];
  const char* kind = NULL;
  int kept = errno;
  switch (id) {
  case CALL_read: case CALL_write: case CALL_readv: case CALL_writev:
    kind = descriptor_kind((int) arg[0]);
    break;
  case CALL_epoll_ctl:
    kind = arg[1] == EPOLL_CTL_ADD ? "add" : arg[1] == EPOLL_CTL_MOD ? "mod" : "del";
    break;
  case CALL_sendmsg: case CALL_recvmsg:
    kind = message_kind((int) arg[0]);
    break;
  case CALL_ioctl:
    kind = arg[1] == (long) FICLONE ? "clone" : arg[1] == TIOCGWINSZ ? "winsize" : "other";
    break;
  case CALL_fcntl:
    kind = arg[1] == F_DUPFD_CLOEXEC || arg[1] == F_DUPFD ? "dup" : "flags";
    break;
  case CALL_syscall:
    kind = arg[0] == SYS_io_uring_setup ? "io_uring_setup" : arg[0] == SYS_io_uring_enter ? "io_uring_enter"
      : arg[0] == SYS_io_uring_register ? "io_uring_register" : arg[0] == SYS_pidfd_open ? "pidfd_open"
      : arg[0] == SYS_pidfd_send_signal ? "pidfd_send_signal" : arg[0] == SYS_epoll_pwait2 ? "epoll_pwait2" : "other";
    break;
  default: break;
  }
  snprintf(name, sizeof name, kind ? "%s.%s" : "%s", names[id], kind);
  errno = kept;
  return rule_named(name);
}

/* Whether the call of this rule that is being made is the one to fail. */
static int is_aimed_at(int rule) {
  int number = atomic_fetch_add(&shared->seen[rule], 1) + 1;
  if (shared->rule != rule || number < shared->number || (number > shared->number && !shared->lasts)) return 0;
  atomic_store(&shared->hit, 1);
  return 1;
}

/* Reports the descriptor's readiness once more, as the kernel does for those who follow edges when more comes
 * after a call that would have blocked, or that took less than it was asked for. */
static void again(int fd) {
  if (fd >= 0 && fd < (int) COUNT(registered) && registered[fd].epoll > 0)
    epoll_ctl(registered[fd].epoll, EPOLL_CTL_MOD, fd, &registered[fd].event);
}

static long fail(enum id id, enum how how, int error, const long* a) {
  if (id == CALL_close || (id == CALL_connect && error == EINTR))
    real[id](a[0], a[1], a[2], 0, 0, 0, 0);
  if (error == EAGAIN) again((int) a[0]);
  errno = how == EAI ? ENOMEM : error;
  switch (how) {
  case NULL_POINTER: return 0;
  case NUMBER: case EAI: return error;
  default: return -1;
  }
}

/* The first byte of an array of buffers; nothing if there is no more anyway. */
static int first_byte(const struct iovec* array, size_t count, struct iovec* one) {
  size_t bytes = 0, at = 0;
  for (size_t each = 0; each < count; each++) bytes += array[each].iov_len;
  if (bytes <= 1) return 0;
  while (array[at].iov_len == 0) at++;
  *one = (struct iovec) { array[at].iov_base, 1 };
  return 1;
}

/* Makes the call for one byte, or one datagram, of all that it was to be made for. */
static long make_short(enum id id, long* arg) {
  struct iovec one;
  struct msghdr* message = (struct msghdr*) arg[1], copy;
  int length = 2; /* which argument says how much */
  switch (id) {
  case CALL_readv: case CALL_writev: case CALL_preadv: case CALL_pwritev: case CALL_pwritev2:
    if (first_byte((struct iovec*) arg[1], (size_t) arg[2], &one)) arg[1] = (long) &one, arg[2] = 1;
    break;
  case CALL_sendmsg: case CALL_recvmsg:
    copy = *message;
    if (first_byte(copy.msg_iov, copy.msg_iovlen, &one)) copy.msg_iov = &one, copy.msg_iovlen = 1;
    long count = real[id](arg[0], (long) &copy, arg[2], 0, 0, 0, 0);
    message->msg_namelen = copy.msg_namelen;
    message->msg_controllen = copy.msg_controllen;
    message->msg_flags = copy.msg_flags;
    return count;
  case CALL_getrandom: length = 1; break;
  case CALL_sendfile: length = 3; break;
  case CALL_copy_file_range: length = 4; break;
  default: break;
  }
  if (arg[length] > 1) arg[length] = 1;
  return real[id](arg[0], arg[1], arg[2], arg[3], arg[4], arg[5], arg[6]);
}

static long meet(enum id id, long a, long b, long c, long d, long e, long f, long g) {
  long arg[] = { a, b, c, d, e, f, g };
  int rule = rule_of(id, arg);
  if (id == CALL_epoll_ctl && c >= 0 && c < (long) COUNT(registered)) {
    registered[c].epoll = b == EPOLL_CTL_DEL ? 0 : (int) a;
    if (b != EPOLL_CTL_DEL) registered[c].event = *(struct epoll_event*) d;
  }
  if (id == CALL_close && a >= 0 && a < (long) COUNT(registered)) registered[a].epoll = 0;
  /* Who writes to standard error is about to abort, and needs memory to say where it is. */
  if ((id == CALL_write || id == CALL_writev) && a == 2) shared->lasts = 0;
  if (rule >= 0 && is_aimed_at(rule)) {
    if (!shared->make_short) return fail(id, rules[rule].how, shared->error, arg);
    long count = make_short(id, arg);
    again((int) a);
    return count;
  }
  return real[id](a, b, c, d, e, f, g);
}

#define F(name) \
  static long wrap_##name(long a, long b, long c, long d, long e, long f, long g) { \
    return meet(CALL_##name, a, b, c, d, e, f, g); \
  }
FAILABLE(F)
#undef F
static const function wrappers[] = {
#define F(name) wrap_##name,
  FAILABLE(F)
#undef F
};

/* The memory that one side has and has not given back. */
struct ledger {
  atomic_flag lock;
  void* held[1 << 16];
  long count;
};
static struct ledger rust_side, uv_side;

static size_t slot_of(const void* memory) {
  return ((uintptr_t) memory >> 4) * 0x9E3779B97F4A7C15u >> 48;
}

#define GONE ((void*) 1)
static void change(struct ledger* ledger, void* memory, int added) {
  while (atomic_flag_test_and_set(&ledger->lock)) sched_yield();
  size_t at = slot_of(memory), last = COUNT(ledger->held) - 1;
  if (added) {
    while (ledger->held[at] != NULL && ledger->held[at] != GONE) at = (at + 1) & last;
    ledger->held[at] = memory;
    ledger->count++;
  } else {
    while (ledger->held[at] != NULL && ledger->held[at] != memory) at = (at + 1) & last;
    if (ledger->held[at] == memory) {
      ledger->held[at] = GONE;
      ledger->count--;
    }
  }
  atomic_flag_clear(&ledger->lock);
}

static int refused(const char* name) {
  if (!is_aimed_at(rule_named(name))) return 0;
  errno = ENOMEM;
  return 1;
}

static void* kept(struct ledger* ledger, void* memory) {
  if (memory != NULL) change(ledger, memory, 1);
  return memory;
}

static void* resized(struct ledger* ledger, void* memory, size_t size) {
  /* Forgotten first: another thread may be given the old place at once. */
  if (memory != NULL) change(ledger, memory, 0);
  void* moved = realloc(memory, size);
  if (moved != NULL || memory != NULL) change(ledger, moved != NULL ? moved : memory, 1);
  return moved;
}

static void* rust_malloc(size_t size) {
  return refused("rust_malloc") ? NULL : kept(&rust_side, malloc(size));
}
static void* rust_calloc(size_t count, size_t size) {
  return refused("rust_malloc") ? NULL : kept(&rust_side, calloc(count, size));
}
static void* rust_realloc(void* memory, size_t size) {
  return refused("rust_malloc") ? NULL : resized(&rust_side, memory, size);
}
static int rust_memalign(void** memory, size_t alignment, size_t size) {
  if (refused("rust_malloc")) return ENOMEM;
  int result = posix_memalign(memory, alignment, size);
  if (result == 0) kept(&rust_side, *memory);
  return result;
}
static void rust_free(void* memory) {
  if (memory != NULL) change(&rust_side, memory, 0);
  free(memory);
}
void* uv_side_malloc(size_t size) {
  return refused("uv_malloc") ? NULL : kept(&uv_side, malloc(size));
}
void* uv_side_calloc(size_t count, size_t size) {
  return refused("uv_malloc") ? NULL : kept(&uv_side, calloc(count, size));
}
void* uv_side_realloc(void* memory, size_t size) {
  return refused("uv_malloc") ? NULL : resized(&uv_side, memory, size);
}
void uv_side_free(void* memory) {
  if (memory != NULL) change(&uv_side, memory, 0);
  free(memory);
}
long interpose_live(void) { return rust_side.count; }
long uv_side_live(void) { return uv_side.count; }

static void* replacement(const char* name) {
  static const struct { const char* name; void* by; } memory[] = {
    { "malloc", rust_malloc }, { "calloc", rust_calloc }, { "realloc", rust_realloc },
    { "posix_memalign", rust_memalign }, { "free", rust_free },
  };
  for (size_t at = 0; at < COUNT(memory); at++)
    if (strcmp(memory[at].name, name) == 0) return memory[at].by;
  for (size_t at = 0; at < CALLS; at++) {
    if (strcmp(names[at], name) != 0) continue;
    if (real[at] == NULL) real[at] = (function) dlsym(RTLD_DEFAULT, name);
    return (void*) wrappers[at];
  }
  return NULL;
}

static int unknown_imports;
static void classify(const char* name) {
  for (size_t at = 0; at < COUNT(infallible); at++)
    if (fnmatch(infallible[at], name, 0) == 0) return;
  printf("unknown %s\n", name);
  unknown_imports++;
}
int interpose_unknown_imports(void) { return unknown_imports; }

struct object {
  uintptr_t base, end;
  const Elf64_Rela* tables[2];
  size_t sizes[2];
  const Elf64_Sym* symbols;
  const char* strings;
};

static void read_object(const struct dl_phdr_info* info, struct object* object) {
  object->base = info->dlpi_addr;
  for (int at = 0; at < info->dlpi_phnum; at++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[at];
    uintptr_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
    if (part->p_type == PT_LOAD && end > object->end) object->end = end;
    if (part->p_type != PT_DYNAMIC) continue;
    for (const ElfW(Dyn)* entry = (void*) (info->dlpi_addr + part->p_vaddr); entry->d_tag; entry++)
      switch (entry->d_tag) {
      case DT_RELA: object->tables[0] = (void*) entry->d_un.d_ptr; break;
      case DT_RELASZ: object->sizes[0] = entry->d_un.d_val; break;
      case DT_JMPREL: object->tables[1] = (void*) entry->d_un.d_ptr; break;
      case DT_PLTRELSZ: object->sizes[1] = entry->d_un.d_val; break;
      case DT_SYMTAB: object->symbols = (void*) entry->d_un.d_ptr; break;
      case DT_STRTAB: object->strings = (void*) entry->d_un.d_ptr; break;
      }
  }
}

static struct object library, program;
static int find_objects(struct dl_phdr_info* info, size_t size, void* unused) {
  (void) size, (void) unused;
  if (info->dlpi_name[0] == '\0' && program.end == 0) read_object(info, &program);
  if (strstr(info->dlpi_name, "libuv.so.1") != NULL) read_object(info, &library);
  return 0;
}

static void each_import(const struct object* object, void (*visit)(const char*, void**)) {
  for (int table = 0; table < 2; table++)
    for (size_t at = 0; at < object->sizes[table] / sizeof(Elf64_Rela); at++) {
      const Elf64_Rela* entry = &object->tables[table][at];
      const Elf64_Sym* symbol = &object->symbols[ELF64_R_SYM(entry->r_info)];
      unsigned type = ELF64_R_TYPE(entry->r_info);
      if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && symbol->st_shndx == SHN_UNDEF)
        visit(object->strings + symbol->st_name, (void**) (object->base + entry->r_offset));
    }
}

static void redirect(const char* name, void** entry) {
  void* by = replacement(name);
  if (by == NULL) {
    classify(name);
    return;
  }
  long page = sysconf(_SC_PAGESIZE);
  void* start = (void*) ((uintptr_t) entry & ~(uintptr_t) (page - 1));
  mprotect(start, page, PROT_READ | PROT_WRITE);
  *entry = by;
}

void interpose(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared->rule = -1;
  dl_iterate_phdr(find_objects, NULL);
  each_import(&library, redirect);
}

void interpose_aim(const char* call, int number, const char* error) {
  shared->make_short = strcmp(error, "short") == 0;
  size_t length = strcspn(error, "+");
  shared->lasts = error[length] == '+';
  for (size_t at = 0; at < COUNT(errors); at++)
    if (strlen(errors[at].name) == length && strncmp(errors[at].name, error, length) == 0) shared->error = errors[at].value;
  shared->number = number;
  shared->rule = rule_named(call);
  if (shared->rule < 0 || (shared->error == 0 && !shared->make_short)) {
    fprintf(stderr, "there is no such case\n");
    _exit(2);
  }
}
static int disarmed;
void interpose_disarm(void) {
  disarmed = shared->rule;
  shared->rule = -1;
}
void interpose_rearm(void) {
  memset(shared->seen, 0, sizeof shared->seen);
  shared->hit = 0;
  shared->rule = disarmed;
}
int interpose_was_hit(void) { return shared->hit; }
int interpose_denied(void) { return shared->hit && shared->error == EACCES; }

void interpose_print_cases(const char* scenario) {
  for (size_t at = 0; at < COUNT(rules); at++) {
    int seen = shared->seen[at];
    int waits = strstr(rules[at].call, "epoll_p") != NULL || strstr(rules[at].call, "poll") == rules[at].call
      || strcmp(rules[at].call, "ppoll") == 0 || strcmp(rules[at].call, "pselect") == 0;
    for (int number = 1; number <= seen && !(waits && number > MOST_WAITS); number++) {
      char list[256], *rest = list, *error;
      snprintf(list, sizeof list, "%s", rules[at].errors);
      while ((error = strsep(&rest, " ")) != NULL)
        printf("case %s/%s#%d/%s\n", scenario, rules[at].call, number, error);
    }
  }
}

/* The program is bound lazily: a function of the library that it has called at least once is one whose entry
 * no longer leads back into the program. */
static void print_if_bound(const char* name, void** entry) {
  uintptr_t to = (uintptr_t) *entry;
  if (strncmp(name, "uv_", 3) == 0 && to >= library.base && to < library.end) printf("reached %s\n", name);
}
void interpose_print_reached(void) { each_import(&program, print_if_bound); }
