/* Which errors a call may be made to fail with: those that its man page allows and that can
 * happen to a correct program. The one place where this is decided.
 *
 * A call on a descriptor is told apart by what the descriptor is, since the man pages do: `read.socket`
 * is not `read.file`. fcntl(2) and ioctl(2) are told apart by command, syscall(2) by number, messages by
 * whether their socket is a stream.
 *
 * An error with a plus lasts: every later call of the kind fails as well, as where memory or descriptors are used up.
 * A stream that is told ENOBUFS tries again when it can write, so that for streams it does not last.
 * Besides errno names a rule may say `short`: the call is made with room for one byte, or one datagram, only.
 * EAGAIN is only allowed where the kernel reports readiness again afterwards; the interposer provides that
 * report (see interpose.c). Calls that fail after their work is done (close, connect with EINTR) do it. */

enum how { MINUS_ONE, NULL_POINTER, NUMBER, EAI, MAP };

static const struct rule {
  const char* call;
  enum how how;
  const char* errors;
} rules[] = {
  { "uv_malloc", NULL_POINTER, "ENOMEM ENOMEM+" },
  { "rust_malloc", NULL_POINTER, "ENOMEM ENOMEM+" },
  { "accept4", MINUS_ONE, "EINTR EAGAIN ECONNABORTED EMFILE ENFILE ENOBUFS ENOMEM EPERM" },
  { "access", MINUS_ONE, "EACCES EIO ENOMEM" },
  { "bind", MINUS_ONE, "EADDRINUSE EACCES ENOMEM" },
  { "chdir", MINUS_ONE, "EACCES EIO ENOMEM" },
  { "chmod", MINUS_ONE, "EIO EPERM EROFS ENOMEM" },
  { "chown", MINUS_ONE, "EIO EPERM EROFS ENOMEM" },
  { "clone", MINUS_ONE, "EAGAIN ENOMEM EMFILE ENFILE ENOSPC EAGAIN+" },
  { "close", MINUS_ONE, "EINTR EIO ENOSPC" },
  { "connect", MINUS_ONE, "EINTR EAGAIN EACCES ECONNREFUSED ENETUNREACH ETIMEDOUT EADDRNOTAVAIL ENETUNREACH+" },
  { "copy_file_range", MINUS_ONE, "EIO ENOSPC EXDEV ENOMEM EOPNOTSUPP short" },
  { "dup2", MINUS_ONE, "EINTR EBUSY EMFILE" },
  { "dup3", MINUS_ONE, "EINTR EBUSY EMFILE" },
  { "epoll_create1", MINUS_ONE, "EMFILE ENFILE ENOMEM" },
  { "epoll_ctl.add", MINUS_ONE, "ENOMEM ENOSPC ENOSPC+" },
  { "epoll_ctl.mod", MINUS_ONE, "ENOMEM" },
  { "epoll_pwait", MINUS_ONE, "EINTR" },
  { "eventfd", MINUS_ONE, "EMFILE ENFILE ENODEV ENOMEM EMFILE+" },
  { "execve", MINUS_ONE, "EACCES EAGAIN EIO EMFILE ENOMEM ETXTBSY ENOENT" },
  { "fallocate64", MINUS_ONE, "EINTR EIO ENOSPC EDQUOT EOPNOTSUPP ENOSPC+" },
  { "fchmod", MINUS_ONE, "EIO EPERM EROFS" },
  { "fchown", MINUS_ONE, "EIO EPERM EROFS" },
  { "fchownat", MINUS_ONE, "EIO EPERM EROFS" },
  { "fcntl.dup", MINUS_ONE, "EMFILE EMFILE+" },
  { "fdatasync", MINUS_ONE, "EINTR EIO ENOSPC" },
  { "fstat", MINUS_ONE, "ENOMEM" },
  { "fstat64", MINUS_ONE, "ENOMEM" },
  { "fstatat", MINUS_ONE, "EACCES ENOMEM" },
  { "fstatat64", MINUS_ONE, "EACCES ENOMEM" },
  { "fstatfs", MINUS_ONE, "EINTR EIO ENOMEM" },
  { "fstatfs64", MINUS_ONE, "EINTR EIO ENOMEM" },
  { "fsync", MINUS_ONE, "EINTR EIO ENOSPC" },
  { "ftruncate", MINUS_ONE, "EINTR EIO EPERM" },
  { "futimens", MINUS_ONE, "EACCES EPERM EROFS" },
  { "getaddrinfo", EAI, "EAI_AGAIN EAI_FAIL EAI_MEMORY EAI_SYSTEM" },
  { "getcwd", NULL_POINTER, "EACCES ENOENT ENOMEM" },
  { "getgrgid_r", NUMBER, "EINTR EIO EMFILE ENFILE ENOMEM ERANGE" },
  { "gethostname", MINUS_ONE, "ENAMETOOLONG" },
  { "getifaddrs", MINUS_ONE, "EMFILE ENOBUFS ENOMEM" },
  { "getnameinfo", EAI, "EAI_AGAIN EAI_FAIL EAI_MEMORY EAI_SYSTEM" },
  { "getpeername", MINUS_ONE, "ENOBUFS ENOTCONN" },
  { "getpriority", MINUS_ONE, "ESRCH" },
  { "getpwuid_r", NUMBER, "EINTR EIO EMFILE ENFILE ENOMEM ERANGE" },
  { "getrandom", MINUS_ONE, "EINTR short" },
  { "getsockname", MINUS_ONE, "ENOBUFS" },
  { "getsockopt", MINUS_ONE, "ENOBUFS" },
  { "if_indextoname", NULL_POINTER, "ENXIO" },
  { "inotify_add_watch", MINUS_ONE, "EACCES ENOMEM ENOSPC ENOSPC+" },
  { "inotify_init1", MINUS_ONE, "EMFILE ENFILE ENOMEM" },
  { "ioctl.clone", MINUS_ONE, "EINVAL EOPNOTSUPP EPERM ETXTBSY EXDEV" },
  { "ioctl.winsize", MINUS_ONE, "EINTR EIO" },
  { "kill", MINUS_ONE, "EPERM ESRCH" },
  { "link", MINUS_ONE, "EACCES EDQUOT EIO ENOMEM ENOSPC EPERM" },
  { "listen", MINUS_ONE, "EADDRINUSE" },
  { "lseek", MINUS_ONE, "EOVERFLOW ESPIPE" },
  { "lseek64", MINUS_ONE, "EOVERFLOW ESPIPE" },
  { "madvise", MINUS_ONE, "EINVAL ENOMEM" },
  { "mkdir", MINUS_ONE, "EACCES EDQUOT ENOMEM ENOSPC" },
  { "mkdirat", MINUS_ONE, "EACCES EDQUOT EEXIST ENOMEM ENOSPC EROFS" },
  { "mkdtemp", NULL_POINTER, "EACCES EEXIST ENOSPC" },
  { "mkostemp", MINUS_ONE, "EEXIST EMFILE ENOSPC" },
  { "mmap", MAP, "EAGAIN ENFILE ENOMEM EPERM ENOMEM+" },
  { "mmap64", MAP, "EAGAIN ENFILE ENOMEM EPERM ENOMEM+" },
  { "mprotect", MINUS_ONE, "ENOMEM" },
  { "open", MINUS_ONE, "EACCES EINTR EMFILE ENFILE ENOMEM ENOSPC EDQUOT EMFILE+" },
  { "open64", MINUS_ONE, "EACCES EINTR EMFILE ENFILE ENOMEM ENOSPC EDQUOT EMFILE+" },
  { "openat64", MINUS_ONE, "EACCES EINTR EMFILE ENFILE ENOMEM ENOSPC EDQUOT EMFILE+" },
  { "opendir", NULL_POINTER, "EACCES EMFILE ENFILE ENOMEM EMFILE+" },
  { "pipe2", MINUS_ONE, "EMFILE ENFILE EMFILE+" },
  { "poll", MINUS_ONE, "EINTR ENOMEM" },
  { "posix_madvise", NUMBER, "EINVAL ENOMEM" },
  { "ppoll", MINUS_ONE, "EINTR ENOMEM" },
  { "prctl", MINUS_ONE, "EINVAL" },
  { "pread", MINUS_ONE, "EINTR EIO short" },
  { "preadv", MINUS_ONE, "EINTR EIO short" },
  { "pselect", MINUS_ONE, "EINTR ENOMEM" },
  { "pthread_attr_init", NUMBER, "ENOMEM" },
  { "pthread_barrier_init", NUMBER, "EAGAIN ENOMEM" },
  { "pthread_cond_init", NUMBER, "EAGAIN ENOMEM" },
  { "pthread_condattr_init", NUMBER, "ENOMEM" },
  { "pthread_create", NUMBER, "EAGAIN EPERM EAGAIN+" },
  { "pthread_key_create", NUMBER, "EAGAIN ENOMEM" },
  { "pthread_mutex_init", NUMBER, "EAGAIN ENOMEM EPERM" },
  { "pthread_mutexattr_init", NUMBER, "ENOMEM" },
  { "pthread_rwlock_init", NUMBER, "EAGAIN ENOMEM EPERM" },
  { "pthread_setaffinity_np", NUMBER, "EINVAL" },
  { "pthread_setname_np", NUMBER, "EIO" },
  { "pthread_setschedparam", NUMBER, "EPERM" },
  { "pwrite", MINUS_ONE, "EINTR EIO ENOSPC EDQUOT short ENOSPC+" },
  { "pwritev", MINUS_ONE, "EINTR EIO ENOSPC EDQUOT short" },
  { "pwritev2", MINUS_ONE, "EINTR EIO ENOSPC EDQUOT ENOSYS short" },
  { "read.file", MINUS_ONE, "EINTR EIO short EIO+" },
  { "read.inotify", MINUS_ONE, "EINTR EAGAIN" },
  { "read.pipe", MINUS_ONE, "EINTR EAGAIN short" },
  { "read.socket", MINUS_ONE, "EINTR EAGAIN ECONNRESET ENOMEM ETIMEDOUT short ENOMEM+" },
  { "read.tty", MINUS_ONE, "EINTR EAGAIN EIO short" },
  { "readdir", NULL_POINTER, "EIO" },
  { "readlink", MINUS_ONE, "EACCES EIO ENOMEM" },
  { "readlinkat", MINUS_ONE, "EACCES EIO ENOMEM" },
  { "readv.file", MINUS_ONE, "EINTR EIO short" },
  { "realpath", NULL_POINTER, "EACCES EIO ENOMEM" },
  { "recv", MINUS_ONE, "EINTR EAGAIN ECONNRESET ECONNREFUSED ENOMEM short ENOMEM+" },
  { "recvfrom", MINUS_ONE, "EINTR EAGAIN ECONNREFUSED ENOMEM" },
  { "recvmmsg", MINUS_ONE, "EINTR EAGAIN ECONNREFUSED ENOMEM short" },
  { "recvmsg.datagram", MINUS_ONE, "EINTR EAGAIN ECONNREFUSED ENOMEM" },
  { "recvmsg.stream", MINUS_ONE, "EINTR EAGAIN ECONNRESET ENOMEM short" },
  { "rename", MINUS_ONE, "EACCES EDQUOT ENOMEM ENOSPC EXDEV" },
  { "renameat", MINUS_ONE, "EACCES EDQUOT EIO ENOMEM ENOSPC" },
  { "rmdir", MINUS_ONE, "EACCES EBUSY ENOMEM" },
  { "sem_init", MINUS_ONE, "ENOSYS" },
  { "sem_wait", MINUS_ONE, "EINTR" },
  { "send", MINUS_ONE, "EINTR EAGAIN ECONNRESET ENOBUFS ENOMEM EPIPE short" },
  { "sendfile", MINUS_ONE, "EAGAIN EIO ENOMEM EINVAL short" },
  { "sendmmsg", MINUS_ONE, "EINTR EAGAIN ECONNREFUSED ENOBUFS ENOMEM EPERM short ENOBUFS+" },
  { "sendmsg.datagram", MINUS_ONE, "EINTR EAGAIN ECONNREFUSED ENOBUFS ENOMEM EPERM ENOBUFS+" },
  { "sendmsg.stream", MINUS_ONE, "EINTR EAGAIN ECONNRESET ENOBUFS ENOMEM EPIPE short" },
  { "sendto", MINUS_ONE, "EINTR EAGAIN ECONNREFUSED ENOBUFS ENOMEM EPERM ENOBUFS+" },
  { "setenv", MINUS_ONE, "ENOMEM" },
  { "setpriority", MINUS_ONE, "EACCES EPERM" },
  { "setsockopt", MINUS_ONE, "ENOMEM ENOPROTOOPT EPERM" },
  { "shutdown", MINUS_ONE, "ENOTCONN" },
  { "socket", MINUS_ONE, "EACCES EAFNOSUPPORT EMFILE ENFILE ENOBUFS ENOMEM EMFILE+" },
  { "socketpair", MINUS_ONE, "EMFILE ENFILE EOPNOTSUPP EMFILE+" },
  { "stat", MINUS_ONE, "EACCES ENOMEM" },
  { "stat64", MINUS_ONE, "EACCES ENOMEM" },
  { "statfs", MINUS_ONE, "EACCES EINTR EIO ENOMEM" },
  { "statx", MINUS_ONE, "EACCES ENOMEM ENOSYS" },
  { "symlink", MINUS_ONE, "EACCES EDQUOT EIO ENOMEM ENOSPC" },
  { "syscall.epoll_pwait2", MINUS_ONE, "EINTR ENOSYS" },
  { "syscall.io_uring_setup", MINUS_ONE, "EMFILE ENFILE ENOMEM EPERM ENOSYS" },
  { "syscall.io_uring_enter", MINUS_ONE, "EAGAIN EBUSY EINTR" },
  { "syscall.io_uring_register", MINUS_ONE, "EMFILE ENOMEM" },
  { "syscall.pidfd_open", MINUS_ONE, "EMFILE ENFILE ENODEV ENOMEM EMFILE+" },
  { "syscall.pidfd_send_signal", MINUS_ONE, "EPERM ESRCH ENOSYS" },
  { "sysinfo", MINUS_ONE, "EFAULT" },
  { "tcgetattr", MINUS_ONE, "EIO" },
  { "tcsetattr", MINUS_ONE, "EINTR EIO" },
  { "ttyname_r", NUMBER, "ENOTTY ERANGE" },
  { "unlink", MINUS_ONE, "EACCES EBUSY EIO ENOMEM" },
  { "unlinkat", MINUS_ONE, "EACCES EBUSY EIO ENOMEM" },
  { "utimensat", MINUS_ONE, "EACCES EPERM EROFS" },
  { "waitpid", MINUS_ONE, "EINTR" },
  { "write.event", MINUS_ONE, "EINTR" },
  { "write.file", MINUS_ONE, "EINTR EIO ENOSPC EDQUOT short ENOSPC+" },
  { "write.pipe", MINUS_ONE, "EINTR EAGAIN EPIPE short" },
  { "write.socket", MINUS_ONE, "EINTR EAGAIN ECONNRESET ENOBUFS EPIPE short" },
  { "write.tty", MINUS_ONE, "EINTR EAGAIN EIO short" },
  { "writev.file", MINUS_ONE, "EINTR EIO ENOSPC EDQUOT short" },
  { "writev.pipe", MINUS_ONE, "EINTR EAGAIN EPIPE short" },
  { "writev.socket", MINUS_ONE, "EINTR EAGAIN ECONNRESET ENOBUFS EPIPE short" },
};

/* Every function of the C library that can fail, whether a rule lets it or not. */
#define FAILABLE(F) \
  F(accept4) F(access) F(bind) F(chdir) F(chmod) F(chown) F(clone) F(close) F(connect) \
  F(copy_file_range) F(dup2) F(dup3) F(epoll_create1) F(epoll_ctl) F(epoll_pwait) F(eventfd) \
  F(execve) F(fallocate64) F(fchmod) F(fchown) F(fchownat) F(fcntl) F(fdatasync) F(fstat) F(fstat64) \
  F(fstatat) F(fstatat64) F(fstatfs) F(fstatfs64) F(fsync) F(ftruncate) F(futimens) F(getaddrinfo) F(getcwd) \
  F(getgrgid_r) F(gethostname) F(getifaddrs) F(getnameinfo) F(getpeername) F(getpriority) \
  F(getpwuid_r) F(getrandom) F(getsockname) F(getsockopt) F(if_indextoname) F(inotify_add_watch) \
  F(inotify_init1) F(ioctl) F(kill) F(link) F(listen) F(lseek) F(lseek64) F(madvise) F(mkdir) F(mkdirat) \
  F(mkdtemp) F(mkostemp) F(mmap) F(mmap64) F(mprotect) F(open) F(open64) F(openat64) F(opendir) \
  F(pipe2) F(poll) F(posix_madvise) F(ppoll) F(prctl) F(pread) F(preadv) F(pselect) F(pthread_attr_init) \
  F(pthread_barrier_init) F(pthread_cond_init) F(pthread_condattr_init) F(pthread_create) \
  F(pthread_key_create) F(pthread_mutex_init) F(pthread_mutexattr_init) F(pthread_rwlock_init) \
  F(pthread_setaffinity_np) F(pthread_setname_np) F(pthread_setschedparam) F(pwrite) F(pwritev) \
  F(pwritev2) F(read) F(readdir) F(readlink) F(readlinkat) F(readv) F(realpath) F(recv) F(recvfrom) \
  F(recvmmsg) F(recvmsg) F(rename) F(renameat) F(rmdir) F(sem_init) F(sem_wait) F(send) F(sendfile) F(sendmmsg) \
  F(sendmsg) F(sendto) F(setenv) F(setpriority) F(setsockopt) F(shutdown) F(socket) F(socketpair) \
  F(stat) F(stat64) F(statfs) F(statx) F(symlink) F(syscall) F(sysinfo) F(tcgetattr) F(tcsetattr) \
  F(ttyname_r) F(unlink) F(unlinkat) F(utimensat) F(waitpid) F(write) F(writev)

/* Imports that make no call, or whose failure the man page excludes for a correct caller: sigaction(2) fails for
 * bad numbers and addresses only, as fcntl(2) does where it gets and sets flags. */
static const char* const infallible[] = {
  "_ITM_*", "__*", "_dl_find_object", "abort", "bcmp", "cfmakeraw", "clock_gettime",
  "clock_nanosleep", "closedir", "dl_iterate_phdr", "dlclose", "dlerror", "dlopen", "dlsym",
  "environ", "fputs", "free", "freeaddrinfo", "freeifaddrs", "getauxval", "getenv", "geteuid", "getpid",
  "getppid", "getrlimit", "getrlimit64", "getrusage", "gettid", "if_nametoindex",
  "inotify_rm_watch", "isatty", "mem*", "munmap", "pthread_*", "sched_*",
  "sem_*", "setsid", "sigaction", "sigaddset", "sigemptyset", "sigfillset", "sigismember",
  "sigpending", "sigtimedwait", "strlen", "sysconf", "uname", "unsetenv",
  "malloc", "calloc", "realloc", "posix_memalign", "stderr", "stdout",
};
