/*
 * What everything else stands on: error codes, the kinds of handles and
 * requests, the names of all types, the callbacks, and what all handles and
 * all requests have in common.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BLACKLIGHT_UV_BASE_H
#define BLACKLIGHT_UV_BASE_H

#if defined(BUILDING_UV_SHARED) && defined(USING_UV_SHARED)
# error "BUILDING_UV_SHARED and USING_UV_SHARED exclude each other."
#endif

/* Marks the functions of the library. A program may define it beforehand. */
#ifndef UV_EXTERN
# ifdef __GNUC__
#  define UV_EXTERN __attribute__((visibility("default")))
# else
#  define UV_EXTERN
# endif
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "errno.h"
#include "unix.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Errors.
 *
 * The three lists below take the name of a macro and apply it to each item, so
 * that a program can generate its own tables. Their order is part of the
 * interface: the handle and request types are numbered by it.
 */
#define UV_ERRNO_MAP(XX)                                                  \
  XX(E2BIG,           "argument list too long")                           \
  XX(EACCES,          "permission denied")                                \
  XX(EADDRINUSE,      "address already in use")                           \
  XX(EADDRNOTAVAIL,   "address not available")                            \
  XX(EAFNOSUPPORT,    "address family not supported")                     \
  XX(EAGAIN,          "resource temporarily unavailable")                 \
  XX(EAI_ADDRFAMILY,  "address family not supported")                     \
  XX(EAI_AGAIN,       "temporary failure")                                \
  XX(EAI_BADFLAGS,    "bad ai_flags value")                               \
  XX(EAI_BADHINTS,    "invalid value for hints")                          \
  XX(EAI_CANCELED,    "request canceled")                                 \
  XX(EAI_FAIL,        "permanent failure")                                \
  XX(EAI_FAMILY,      "ai_family not supported")                          \
  XX(EAI_MEMORY,      "out of memory")                                    \
  XX(EAI_NODATA,      "no address")                                       \
  XX(EAI_NONAME,      "unknown node or service")                          \
  XX(EAI_OVERFLOW,    "argument buffer overflow")                         \
  XX(EAI_PROTOCOL,    "resolved protocol is unknown")                     \
  XX(EAI_SERVICE,     "service not available for socket type")            \
  XX(EAI_SOCKTYPE,    "socket type not supported")                        \
  XX(EALREADY,        "connection already in progress")                   \
  XX(EBADF,           "bad file descriptor")                              \
  XX(EBUSY,           "resource busy or locked")                          \
  XX(ECANCELED,       "operation canceled")                               \
  XX(ECHARSET,        "invalid Unicode character")                        \
  XX(ECONNABORTED,    "software caused connection abort")                 \
  XX(ECONNREFUSED,    "connection refused")                               \
  XX(ECONNRESET,      "connection reset by peer")                         \
  XX(EDESTADDRREQ,    "destination address required")                     \
  XX(EEXIST,          "file already exists")                              \
  XX(EFAULT,          "bad address in system call argument")              \
  XX(EFBIG,           "file too large")                                   \
  XX(EHOSTUNREACH,    "host is unreachable")                              \
  XX(EINTR,           "interrupted system call")                          \
  XX(EINVAL,          "invalid argument")                                 \
  XX(EIO,             "i/o error")                                        \
  XX(EISCONN,         "socket is already connected")                      \
  XX(EISDIR,          "illegal operation on a directory")                 \
  XX(ELOOP,           "too many symbolic links encountered")              \
  XX(EMFILE,          "too many open files")                              \
  XX(EMSGSIZE,        "message too long")                                 \
  XX(ENAMETOOLONG,    "name too long")                                    \
  XX(ENETDOWN,        "network is down")                                  \
  XX(ENETUNREACH,     "network is unreachable")                           \
  XX(ENFILE,          "file table overflow")                              \
  XX(ENOBUFS,         "no buffer space available")                        \
  XX(ENODEV,          "no such device")                                   \
  XX(ENOENT,          "no such file or directory")                        \
  XX(ENOMEM,          "not enough memory")                                \
  XX(ENONET,          "machine is not on the network")                    \
  XX(ENOPROTOOPT,     "protocol not available")                           \
  XX(ENOSPC,          "no space left on device")                          \
  XX(ENOSYS,          "function not implemented")                         \
  XX(ENOTCONN,        "socket is not connected")                          \
  XX(ENOTDIR,         "not a directory")                                  \
  XX(ENOTEMPTY,       "directory not empty")                              \
  XX(ENOTSOCK,        "socket operation on non-socket")                   \
  XX(ENOTSUP,         "operation not supported on socket")                \
  XX(EOVERFLOW,       "value too large for defined data type")            \
  XX(EPERM,           "operation not permitted")                          \
  XX(EPIPE,           "broken pipe")                                      \
  XX(EPROTO,          "protocol error")                                   \
  XX(EPROTONOSUPPORT, "protocol not supported")                           \
  XX(EPROTOTYPE,      "protocol wrong type for socket")                   \
  XX(ERANGE,          "result too large")                                 \
  XX(EROFS,           "read-only file system")                            \
  XX(ESHUTDOWN,       "cannot send after transport endpoint shutdown")    \
  XX(ESPIPE,          "invalid seek")                                     \
  XX(ESRCH,           "no such process")                                  \
  XX(ETIMEDOUT,       "connection timed out")                             \
  XX(ETXTBSY,         "text file is busy")                                \
  XX(EXDEV,           "cross-device link not permitted")                  \
  XX(UNKNOWN,         "unknown error")                                    \
  XX(EOF,             "end of file")                                      \
  XX(ENXIO,           "no such device or address")                        \
  XX(EMLINK,          "too many links")                                   \
  XX(EHOSTDOWN,       "host is down")                                     \
  XX(EREMOTEIO,       "remote I/O error")                                 \
  XX(ENOTTY,          "inappropriate ioctl for device")                   \
  XX(EFTYPE,          "inappropriate file type or format")                \
  XX(EILSEQ,          "illegal byte sequence")                            \
  XX(ESOCKTNOSUPPORT, "socket type not supported")                        \
  XX(ENODATA,         "no data available")                                \
  XX(EUNATCH,         "protocol driver not attached")                     \
  XX(ENOEXEC,         "exec format error")

/* The enumerator, and the type uv_<name>_t without its prefix and suffix. */
#define UV_HANDLE_TYPE_MAP(XX)                                            \
  XX(ASYNC,       async)                                                  \
  XX(CHECK,       check)                                                  \
  XX(FS_EVENT,    fs_event)                                               \
  XX(FS_POLL,     fs_poll)                                                \
  XX(HANDLE,      handle)                                                 \
  XX(IDLE,        idle)                                                   \
  XX(NAMED_PIPE,  pipe)                                                   \
  XX(POLL,        poll)                                                   \
  XX(PREPARE,     prepare)                                                \
  XX(PROCESS,     process)                                                \
  XX(STREAM,      stream)                                                 \
  XX(TCP,         tcp)                                                    \
  XX(TIMER,       timer)                                                  \
  XX(TTY,         tty)                                                    \
  XX(UDP,         udp)                                                    \
  XX(SIGNAL,      signal)

#define UV_REQ_TYPE_MAP(XX)                                               \
  XX(REQ,         req)                                                    \
  XX(CONNECT,     connect)                                                \
  XX(WRITE,       write)                                                  \
  XX(SHUTDOWN,    shutdown)                                               \
  XX(UDP_SEND,    udp_send)                                               \
  XX(FS,          fs)                                                     \
  XX(WORK,        work)                                                   \
  XX(GETADDRINFO, getaddrinfo)                                            \
  XX(GETNAMEINFO, getnameinfo)                                            \
  XX(RANDOM,      random)

/* The enumerators are spelled by pasting, since a macro of the name of each
 * errno exists and must not be expanded on the way. */
#define UV__ERRNO_ENUMERATOR(name, text) UV_##name = UV__##name,
#define UV__TYPE_ENUMERATOR(upper, lower) UV_##upper,

typedef enum {
  UV_ERRNO_MAP(UV__ERRNO_ENUMERATOR)
  UV_ERRNO_MAX = UV__EOF - 1
} uv_errno_t;

typedef enum {
  UV_UNKNOWN_HANDLE,
  UV_HANDLE_TYPE_MAP(UV__TYPE_ENUMERATOR)
  UV_FILE, /* What uv_guess_handle() calls a regular file. */
  UV_HANDLE_TYPE_MAX
} uv_handle_type;

typedef enum {
  UV_UNKNOWN_REQ,
  UV_REQ_TYPE_MAP(UV__TYPE_ENUMERATOR)
  UV_REQ_TYPE_MAX
} uv_req_type;

#undef UV__ERRNO_ENUMERATOR
#undef UV__TYPE_ENUMERATOR

/* The sentence and the name of an error code. For a code that nobody knows,
 * the functions without _r leak a few bytes to make up an answer; the ones
 * with _r write into the caller's buffer and never do. */
UV_EXTERN const char* uv_strerror(int err);
UV_EXTERN char* uv_strerror_r(int err, char* buf, size_t buflen);
UV_EXTERN const char* uv_err_name(int err);
UV_EXTERN char* uv_err_name_r(int err, char* buf, size_t buflen);

/* From errno to error code; what is an error code already stays as it is. */
UV_EXTERN int uv_translate_sys_error(int sys_errno);

/*
 * The names of all types. A handle lives until its close callback and does
 * things again and again; a request stands for one operation and is the
 * caller's again once its callback runs. The caller provides the memory of
 * both and must not move it in between.
 */
typedef struct uv_loop_s uv_loop_t;

typedef struct uv_handle_s uv_handle_t;
typedef struct uv_async_s uv_async_t;
typedef struct uv_check_s uv_check_t;
typedef struct uv_fs_event_s uv_fs_event_t;
typedef struct uv_fs_poll_s uv_fs_poll_t;
typedef struct uv_idle_s uv_idle_t;
typedef struct uv_pipe_s uv_pipe_t;
typedef struct uv_poll_s uv_poll_t;
typedef struct uv_prepare_s uv_prepare_t;
typedef struct uv_process_s uv_process_t;
typedef struct uv_signal_s uv_signal_t;
typedef struct uv_stream_s uv_stream_t;
typedef struct uv_tcp_s uv_tcp_t;
typedef struct uv_timer_s uv_timer_t;
typedef struct uv_tty_s uv_tty_t;
typedef struct uv_udp_s uv_udp_t;

typedef struct uv_req_s uv_req_t;
typedef struct uv_connect_s uv_connect_t;
typedef struct uv_fs_s uv_fs_t;
typedef struct uv_getaddrinfo_s uv_getaddrinfo_t;
typedef struct uv_getnameinfo_s uv_getnameinfo_t;
typedef struct uv_random_s uv_random_t;
typedef struct uv_shutdown_s uv_shutdown_t;
typedef struct uv_udp_send_s uv_udp_send_t;
typedef struct uv_work_s uv_work_t;
typedef struct uv_write_s uv_write_t;

typedef struct uv_cpu_info_s uv_cpu_info_t;
typedef struct uv_dir_s uv_dir_t;
typedef struct uv_dirent_s uv_dirent_t;
typedef struct uv_env_item_s uv_env_item_t;
typedef struct uv_group_s uv_group_t;
typedef struct uv_interface_address_s uv_interface_address_t;
typedef struct uv_metrics_s uv_metrics_t;
typedef struct uv_passwd_s uv_passwd_t;
typedef struct uv_statfs_s uv_statfs_t;
typedef struct uv_thread_options_s uv_thread_options_t;
typedef struct uv_utsname_s uv_utsname_t;

/* Points in time. The ones without 64 are as wide as the machine's long. */
typedef struct {
  long tv_sec;
  long tv_nsec;
} uv_timespec_t;

typedef struct {
  long tv_sec;
  long tv_usec;
} uv_timeval_t;

typedef struct {
  int64_t tv_sec;
  int32_t tv_nsec;
} uv_timespec64_t;

typedef struct {
  int64_t tv_sec;
  int32_t tv_usec;
} uv_timeval64_t;

/* What stat(2) knows about a file, in fields as wide as any system needs. */
typedef struct {
  uint64_t st_dev;
  uint64_t st_mode;
  uint64_t st_nlink;
  uint64_t st_uid;
  uint64_t st_gid;
  uint64_t st_rdev;
  uint64_t st_ino;
  uint64_t st_size;
  uint64_t st_blksize;
  uint64_t st_blocks;
  uint64_t st_flags;
  uint64_t st_gen;
  uv_timespec_t st_atim;
  uv_timespec_t st_mtim;
  uv_timespec_t st_ctim;
  uv_timespec_t st_birthtim;
} uv_stat_t;

/*
 * Callbacks. All run on the thread of the loop, inside uv_run(), except for
 * uv_work_cb, which runs on a thread of the pool. A `status` is 0 or an error
 * code.
 */

/* Of every handle. */
typedef void (*uv_close_cb)(uv_handle_t* handle);
typedef void (*uv_walk_cb)(uv_handle_t* handle, void* arg);

/* Of the loop's own phases. */
typedef void (*uv_timer_cb)(uv_timer_t* handle);
typedef void (*uv_idle_cb)(uv_idle_t* handle);
typedef void (*uv_prepare_cb)(uv_prepare_t* handle);
typedef void (*uv_check_cb)(uv_check_t* handle);
typedef void (*uv_async_cb)(uv_async_t* handle);

/* Of things the kernel tells. */
typedef void (*uv_poll_cb)(uv_poll_t* handle, int status, int events);
typedef void (*uv_signal_cb)(uv_signal_t* handle, int signum);
typedef void (*uv_exit_cb)(uv_process_t* process,
                           int64_t exit_status,
                           int term_signal);
typedef void (*uv_fs_event_cb)(uv_fs_event_t* handle,
                               const char* filename,
                               int events,
                               int status);
typedef void (*uv_fs_poll_cb)(uv_fs_poll_t* handle,
                              int status,
                              const uv_stat_t* prev,
                              const uv_stat_t* curr);

/* Of reading. The first provides the memory that the second hands back filled:
 * `nread` bytes of it, or none and an error code, of which UV_EOF is one. */
typedef void (*uv_alloc_cb)(uv_handle_t* handle,
                            size_t suggested_size,
                            uv_buf_t* buf);
typedef void (*uv_read_cb)(uv_stream_t* stream,
                           ssize_t nread,
                           const uv_buf_t* buf);
typedef void (*uv_udp_recv_cb)(uv_udp_t* handle,
                               ssize_t nread,
                               const uv_buf_t* buf,
                               const struct sockaddr* addr,
                               unsigned flags);

/* Of a listening stream, once for each connection that waits. */
typedef void (*uv_connection_cb)(uv_stream_t* server, int status);

/* Of requests that are done. */
typedef void (*uv_connect_cb)(uv_connect_t* req, int status);
typedef void (*uv_write_cb)(uv_write_t* req, int status);
typedef void (*uv_shutdown_cb)(uv_shutdown_t* req, int status);
typedef void (*uv_udp_send_cb)(uv_udp_send_t* req, int status);
typedef void (*uv_fs_cb)(uv_fs_t* req);
typedef void (*uv_work_cb)(uv_work_t* req);
typedef void (*uv_after_work_cb)(uv_work_t* req, int status);
typedef void (*uv_getaddrinfo_cb)(uv_getaddrinfo_t* req,
                                  int status,
                                  struct addrinfo* res);
typedef void (*uv_getnameinfo_cb)(uv_getnameinfo_t* req,
                                  int status,
                                  const char* hostname,
                                  const char* service);
typedef void (*uv_random_cb)(uv_random_t* req,
                             int status,
                             void* buf,
                             size_t buflen);

/*
 * Requests.
 *
 * All begin with the same members, so that a pointer to any of them may be
 * cast to uv_req_t. `data` belongs to the program and is never touched; `type`
 * may be read; what follows is private to the library and kept for layout.
 */
#define UV_REQ_FIELDS                                                     \
  void* data;                                                             \
  uv_req_type type;                                                       \
  void* reserved[5];                                                      \
  __extension__ union {                                                   \
    void* reserved2[1];                                                   \
    struct uv__req_write_extra_s write_extra;                             \
  };

struct uv_req_s {
  UV_REQ_FIELDS
};

UV_EXTERN size_t uv_req_size(uv_req_type type);
UV_EXTERN uv_req_type uv_req_get_type(const uv_req_t* req);
UV_EXTERN const char* uv_req_type_name(uv_req_type type);
UV_EXTERN void* uv_req_get_data(const uv_req_t* req);
UV_EXTERN void uv_req_set_data(uv_req_t* req, void* data);

/* Asks that a request not be carried out. Its callback runs in any case, with
 * UV_ECANCELED if the request could still be stopped. */
UV_EXTERN int uv_cancel(uv_req_t* req);

/*
 * Handles.
 *
 * All begin with the same members, so that a pointer to any of them may be
 * cast to uv_handle_t. `data` belongs to the program; `loop` and `type` may be
 * read; what follows is private to the library and kept for layout.
 */
#define UV_HANDLE_FIELDS                                                  \
  void* data;                                                             \
  uv_loop_t* loop;                                                        \
  uv_handle_type type;                                                    \
  uv_close_cb close_cb;                                                   \
  struct uv__queue handle_queue;                                          \
  union {                                                                 \
    int fd;                                                               \
    void* reserved[4];                                                    \
  } u;                                                                    \
  uv_handle_t* next_closing;                                              \
  unsigned int flags;

struct uv_handle_s {
  UV_HANDLE_FIELDS
};

UV_EXTERN size_t uv_handle_size(uv_handle_type type);
UV_EXTERN uv_handle_type uv_handle_get_type(const uv_handle_t* handle);
UV_EXTERN const char* uv_handle_type_name(uv_handle_type type);
UV_EXTERN uv_loop_t* uv_handle_get_loop(const uv_handle_t* handle);
UV_EXTERN void* uv_handle_get_data(const uv_handle_t* handle);
UV_EXTERN void uv_handle_set_data(uv_handle_t* handle, void* data);

/* Every handle that was initialised must be closed. The callback, which may be
 * NULL, runs in a later step of the loop; from then on the memory is free. */
UV_EXTERN void uv_close(uv_handle_t* handle, uv_close_cb close_cb);
UV_EXTERN int uv_is_closing(const uv_handle_t* handle);

/* An active handle keeps uv_run() going, unless it was unreferenced. Both are
 * switches, not counters: to reference twice is to reference once. */
UV_EXTERN int uv_is_active(const uv_handle_t* handle);
UV_EXTERN void uv_ref(uv_handle_t* handle);
UV_EXTERN void uv_unref(uv_handle_t* handle);
UV_EXTERN int uv_has_ref(const uv_handle_t* handle);

/* The descriptor beneath a stream, UDP or poll handle. */
UV_EXTERN int uv_fileno(const uv_handle_t* handle, uv_os_fd_t* fd);

/* The kernel's buffers of a socket: 0 in *value asks, anything else sets. */
UV_EXTERN int uv_send_buffer_size(uv_handle_t* handle, int* value);
UV_EXTERN int uv_recv_buffer_size(uv_handle_t* handle, int* value);

/* A buffer in one expression, as writing it with members would not be portable
 * between systems. */
UV_EXTERN uv_buf_t uv_buf_init(char* base, unsigned int len);

#ifdef __cplusplus
}
#endif

#endif /* BLACKLIGHT_UV_BASE_H */
