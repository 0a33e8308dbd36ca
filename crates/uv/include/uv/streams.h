/*
 * Streams: TCP, pipes (which are Unix domain sockets, FIFOs and pipes alike)
 * and terminals.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BLACKLIGHT_UV_STREAMS_H
#define BLACKLIGHT_UV_STREAMS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What all streams have in common. The first member says how many bytes wait
 * to be written; all else is private to the library and kept for layout.
 */
#define UV_STREAM_FIELDS                                                  \
  size_t write_queue_size;                                                \
  uv_alloc_cb alloc_cb;                                                   \
  uv_read_cb read_cb;                                                     \
  uv_connect_t* connect_req;                                              \
  uv_shutdown_t* shutdown_req;                                            \
  uv__io_t io_watcher;                                                    \
  struct uv__queue write_queue;                                           \
  struct uv__queue write_completed_queue;                                 \
  uv_connection_cb connection_cb;                                         \
  int delayed_error;                                                      \
  int accepted_fd;                                                        \
  void* queued_fds;

struct uv_stream_s {
  UV_HANDLE_FIELDS
  UV_STREAM_FIELDS
};

struct uv_connect_s {
  UV_REQ_FIELDS
  uv_connect_cb cb;
  uv_stream_t* handle;
  /* Private to the library; kept for layout. */
  struct uv__queue queue;
};

struct uv_write_s {
  UV_REQ_FIELDS
  uv_write_cb cb;
  uv_stream_t* send_handle;
  uv_stream_t* handle;
  /* Private to the library; kept for layout. */
  struct uv__queue queue;
  unsigned int write_index;
  uv_buf_t* bufs;
  unsigned int nbufs;
  int error;
  uv_buf_t bufsml[4];
};

struct uv_shutdown_s {
  UV_REQ_FIELDS
  uv_stream_t* handle;
  uv_shutdown_cb cb;
};

/* uv_accept() is sure to succeed once for each call of the connection
 * callback, with a client that was initialised for the same kind of stream. */
UV_EXTERN int uv_listen(uv_stream_t* stream, int backlog, uv_connection_cb cb);
UV_EXTERN int uv_accept(uv_stream_t* server, uv_stream_t* client);

/* After uv_read_stop() the read callback is not called again. */
UV_EXTERN int uv_read_start(uv_stream_t* stream,
                            uv_alloc_cb alloc_cb,
                            uv_read_cb read_cb);
UV_EXTERN int uv_read_stop(uv_stream_t* stream);

/*
 * Writes are carried out in order. The array of buffers is copied; the bytes
 * they point to have to stay until the callback. The functions with a 2 send
 * a handle along, over a pipe opened for that.
 */
UV_EXTERN int uv_write(uv_write_t* req,
                       uv_stream_t* handle,
                       const uv_buf_t bufs[],
                       unsigned int nbufs,
                       uv_write_cb cb);
UV_EXTERN int uv_write2(uv_write_t* req,
                        uv_stream_t* handle,
                        const uv_buf_t bufs[],
                        unsigned int nbufs,
                        uv_stream_t* send_handle,
                        uv_write_cb cb);

/* Write what can be written at once and return how much that was, or
 * UV_EAGAIN; nothing is queued. */
UV_EXTERN int uv_try_write(uv_stream_t* handle,
                           const uv_buf_t bufs[],
                           unsigned int nbufs);
UV_EXTERN int uv_try_write2(uv_stream_t* handle,
                            const uv_buf_t bufs[],
                            unsigned int nbufs,
                            uv_stream_t* send_handle);

/* How much of a write got through. To be asked within its callback, where it
 * tells how far a cancelled write had come. */
UV_EXTERN size_t uv_write_nwritten(const uv_write_t* req);

/* Closes the writing side once all queued writes are done. */
UV_EXTERN int uv_shutdown(uv_shutdown_t* req,
                          uv_stream_t* handle,
                          uv_shutdown_cb cb);

UV_EXTERN int uv_is_readable(const uv_stream_t* handle);
UV_EXTERN int uv_is_writable(const uv_stream_t* handle);
UV_EXTERN size_t uv_stream_get_write_queue_size(const uv_stream_t* stream);
UV_EXTERN int uv_stream_set_blocking(uv_stream_t* handle, int blocking);

/*
 * TCP.
 */
struct uv_tcp_s {
  UV_HANDLE_FIELDS
  UV_STREAM_FIELDS
};

/* For uv_tcp_bind(). */
enum uv_tcp_flags {
  UV_TCP_IPV6ONLY  = 1, /* An IPv6 address that takes no IPv4 connections. */
  UV_TCP_REUSEPORT = 2  /* Listeners that share a port and its connections. */
};

UV_EXTERN int uv_tcp_init(uv_loop_t* loop, uv_tcp_t* handle);
/* The low byte of the flags is an address family: the socket exists at once. */
UV_EXTERN int uv_tcp_init_ex(uv_loop_t* loop,
                             uv_tcp_t* handle,
                             unsigned int flags);
/* Takes over a socket that exists already. */
UV_EXTERN int uv_tcp_open(uv_tcp_t* handle, uv_os_sock_t sock);

/* That an address is in use may be told only by uv_listen() or by
 * uv_tcp_connect(). */
UV_EXTERN int uv_tcp_bind(uv_tcp_t* handle,
                          const struct sockaddr* addr,
                          unsigned int flags);
UV_EXTERN int uv_tcp_connect(uv_connect_t* req,
                             uv_tcp_t* handle,
                             const struct sockaddr* addr,
                             uv_connect_cb cb);
UV_EXTERN int uv_tcp_getsockname(const uv_tcp_t* handle,
                                 struct sockaddr* name,
                                 int* namelen);
UV_EXTERN int uv_tcp_getpeername(const uv_tcp_t* handle,
                                 struct sockaddr* name,
                                 int* namelen);

UV_EXTERN int uv_tcp_nodelay(uv_tcp_t* handle, int enable);
/* Times are in seconds. */
UV_EXTERN int uv_tcp_keepalive(uv_tcp_t* handle,
                               int enable,
                               unsigned int delay);
UV_EXTERN int uv_tcp_keepalive_ex(uv_tcp_t* handle,
                                  int on,
                                  unsigned int idle,
                                  unsigned int intvl,
                                  unsigned int cnt);
/* A matter of Windows; does nothing here. */
UV_EXTERN int uv_tcp_simultaneous_accepts(uv_tcp_t* handle, int enable);

/* Closes with a RST in place of the usual farewell. */
UV_EXTERN int uv_tcp_close_reset(uv_tcp_t* handle, uv_close_cb close_cb);

/*
 * Pipes. One that was initialised with `ipc` can carry handles; what arrived
 * is looked at with the pending functions and taken with uv_accept().
 */
struct uv_pipe_s {
  UV_HANDLE_FIELDS
  UV_STREAM_FIELDS
  int ipc;
  /* Private to the library; kept for layout. */
  const char* pipe_fname;
};

/* For uv_pipe_bind2() and uv_pipe_connect2(): fail if the name is too long,
 * where the older functions cut it. */
enum {
  UV_PIPE_NO_TRUNCATE = 1
};

UV_EXTERN int uv_pipe_init(uv_loop_t* loop, uv_pipe_t* handle, int ipc);
UV_EXTERN int uv_pipe_open(uv_pipe_t* handle, uv_file file);
UV_EXTERN int uv_pipe_bind(uv_pipe_t* handle, const char* name);
UV_EXTERN int uv_pipe_bind2(uv_pipe_t* handle,
                            const char* name,
                            size_t namelen,
                            unsigned int flags);
UV_EXTERN void uv_pipe_connect(uv_connect_t* req,
                               uv_pipe_t* handle,
                               const char* name,
                               uv_connect_cb cb);
UV_EXTERN int uv_pipe_connect2(uv_connect_t* req,
                               uv_pipe_t* handle,
                               const char* name,
                               size_t namelen,
                               unsigned int flags,
                               uv_connect_cb cb);
UV_EXTERN int uv_pipe_getsockname(const uv_pipe_t* handle,
                                  char* buffer,
                                  size_t* size);
UV_EXTERN int uv_pipe_getpeername(const uv_pipe_t* handle,
                                  char* buffer,
                                  size_t* size);
UV_EXTERN void uv_pipe_pending_instances(uv_pipe_t* handle, int count);
UV_EXTERN int uv_pipe_pending_count(uv_pipe_t* handle);
UV_EXTERN uv_handle_type uv_pipe_pending_type(uv_pipe_t* handle);
/* Lets other users at the pipe; flags are UV_READABLE and UV_WRITABLE. */
UV_EXTERN int uv_pipe_chmod(uv_pipe_t* handle, int flags);

/* Two connected ends, as plain descriptors. A flag of UV_NONBLOCK_PIPE makes
 * that end non-blocking. */
UV_EXTERN int uv_pipe(uv_file fds[2], int read_flags, int write_flags);
UV_EXTERN int uv_socketpair(int type,
                            int protocol,
                            uv_os_sock_t socket_vector[2],
                            int flags0,
                            int flags1);

/*
 * Terminals.
 */
struct uv_tty_s {
  UV_HANDLE_FIELDS
  UV_STREAM_FIELDS
  /* Private to the library; kept for layout. */
  struct termios orig_termios;
  int mode;
};

typedef enum {
  UV_TTY_MODE_NORMAL, /* Lines, echo and signal keys, as the user found it. */
  UV_TTY_MODE_RAW,    /* Every key at once; newlines still come out right. */
  UV_TTY_MODE_IO,     /* Bytes as they are, in both directions. */
  UV_TTY_MODE_RAW_VT  /* The same as UV_TTY_MODE_RAW here. */
} uv_tty_mode_t;

typedef enum {
  UV_TTY_SUPPORTED,
  UV_TTY_UNSUPPORTED
} uv_tty_vtermstate_t;

/* The direction is found out by itself; `readable` is not looked at. */
UV_EXTERN int uv_tty_init(uv_loop_t* loop,
                          uv_tty_t* handle,
                          uv_file fd,
                          int readable);
UV_EXTERN int uv_tty_set_mode(uv_tty_t* handle, uv_tty_mode_t mode);
/* To be called at exit, as the mode outlives the process. Safe in a signal
 * handler. */
UV_EXTERN int uv_tty_reset_mode(void);
UV_EXTERN int uv_tty_get_winsize(uv_tty_t* handle, int* width, int* height);

/* A matter of Windows consoles; here the one does nothing and the other
 * returns UV_ENOTSUP. */
UV_EXTERN void uv_tty_set_vterm_state(uv_tty_vtermstate_t state);
UV_EXTERN int uv_tty_get_vterm_state(uv_tty_vtermstate_t* state);

#ifdef __cplusplus
/* C++ does not turn an int into an enum by itself, and the mode used to be an
 * int: this keeps programs of that time compiling. */
extern "C++" {
inline int uv_tty_set_mode(uv_tty_t* handle, int mode) {
  return uv_tty_set_mode(handle, static_cast<uv_tty_mode_t>(mode));
}
}
#endif

/* Which kind of handle fits a descriptor. */
UV_EXTERN uv_handle_type uv_guess_handle(uv_file file);

#ifdef __cplusplus
}
#endif

#endif /* BLACKLIGHT_UV_STREAMS_H */
