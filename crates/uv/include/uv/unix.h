/*
 * What the interface borrows from the system: its headers, the types that are
 * only other names for a type of the C library, and the flags of open(2).
 *
 * The system headers are included for more than our own needs. Programs have
 * come to rely on uv.h to bring in sockets, files and threads, so the list is
 * part of the interface too.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef UV_UNIX_H
#define UV_UNIX_H

#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <termios.h>

#include "linux.h"
#include "threadpool.h"

/* The C library hides these two from strictly conforming programs, but they
 * size members of uv_getnameinfo_t, which must not depend on that. */
#ifndef NI_MAXHOST
# define NI_MAXHOST 1025
#endif
#ifndef NI_MAXSERV
# define NI_MAXSERV 32
#endif

/* Hidden in the same way, and named by callbacks that even such programs see. */
struct addrinfo;

/* A piece of memory to read into or write from. It is laid out as a
 * `struct iovec`, and an array of one may be passed as the other. */
typedef struct uv_buf_t {
  char* base;
  size_t len;
} uv_buf_t;

/* Files, sockets, processes and owners are what they are to the kernel. */
typedef int uv_file;
typedef int uv_os_fd_t;
typedef int uv_os_sock_t;
typedef pid_t uv_pid_t;
typedef uid_t uv_uid_t;
typedef gid_t uv_gid_t;

/* Threads and their locks are those of the C library, so they may be mixed
 * with direct calls to pthread_*. */
typedef pthread_t uv_thread_t;
typedef pthread_key_t uv_key_t;
typedef pthread_mutex_t uv_mutex_t;
typedef pthread_rwlock_t uv_rwlock_t;
typedef pthread_cond_t uv_cond_t;
typedef pthread_once_t uv_once_t;

#define UV_ONCE_INIT      PTHREAD_ONCE_INIT
#define UV_PLATFORM_SEM_T sem_t
typedef UV_PLATFORM_SEM_T uv_sem_t;

#ifdef PTHREAD_BARRIER_SERIAL_THREAD
typedef pthread_barrier_t uv_barrier_t;
#else
/* The program asked for a standard older than pthread_barrier_t. The library
 * uses one all the same, so the program has to make room for it. */
typedef union {
  char size[32];
  long align;
} uv_barrier_t;
#endif

/* A library opened by uv_dlopen(). */
typedef struct {
  void* handle;
  char* errmsg;
} uv_lib_t;

/* The calling convention of functions found by uv_dlsym(): the usual one. */
#define UV_DYNAMIC

/* Directory entries as the C library reports them, where it says their kind. */
typedef struct dirent uv__dirent_t;

#ifdef DT_UNKNOWN
# define HAVE_DIRENT_TYPES
# define UV__DT_FILE   DT_REG
# define UV__DT_DIR    DT_DIR
# define UV__DT_LINK   DT_LNK
# define UV__DT_FIFO   DT_FIFO
# define UV__DT_SOCKET DT_SOCK
# define UV__DT_CHAR   DT_CHR
# define UV__DT_BLOCK  DT_BLK
#endif

/*
 * Flags for uv_fs_open(). A flag that does not exist here is 0, so that a
 * program may pass it everywhere.
 */
#define UV_FS_O_RDONLY      O_RDONLY
#define UV_FS_O_WRONLY      O_WRONLY
#define UV_FS_O_RDWR        O_RDWR
#define UV_FS_O_APPEND      O_APPEND
#define UV_FS_O_CREAT       O_CREAT
#define UV_FS_O_EXCL        O_EXCL
#define UV_FS_O_NOCTTY      O_NOCTTY
#define UV_FS_O_NONBLOCK    O_NONBLOCK
#define UV_FS_O_SYNC        O_SYNC
#define UV_FS_O_TRUNC       O_TRUNC

/* The C library shows O_DIRECT to GNU programs alone; its number is the
 * kernel's and depends on the processor. */
#ifdef __aarch64__
# define UV_FS_O_DIRECT     0x10000
#else
# define UV_FS_O_DIRECT     0x04000
#endif

/* Which of these the C library shows depends on the standard asked for. */
#ifdef O_DIRECTORY
# define UV_FS_O_DIRECTORY  O_DIRECTORY
#else
# define UV_FS_O_DIRECTORY  0
#endif
#ifdef O_DSYNC
# define UV_FS_O_DSYNC      O_DSYNC
#else
# define UV_FS_O_DSYNC      0
#endif
#ifdef O_NOATIME
# define UV_FS_O_NOATIME    O_NOATIME
#else
# define UV_FS_O_NOATIME    0
#endif
#ifdef O_NOFOLLOW
# define UV_FS_O_NOFOLLOW   O_NOFOLLOW
#else
# define UV_FS_O_NOFOLLOW   0
#endif

/* Flags of macOS and Windows. */
#define UV_FS_O_EXLOCK      0
#define UV_FS_O_SYMLINK     0
#define UV_FS_O_FILEMAP     0
#define UV_FS_O_RANDOM      0
#define UV_FS_O_SEQUENTIAL  0
#define UV_FS_O_SHORT_LIVED 0
#define UV_FS_O_TEMPORARY   0

#endif /* UV_UNIX_H */
