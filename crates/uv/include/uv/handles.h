/*
 * Handles that are no streams: the steps of the loop, wake-ups from other
 * threads, descriptors of the program's own, signals and child processes.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BLACKLIGHT_UV_HANDLES_H
#define BLACKLIGHT_UV_HANDLES_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Timers call back once `timeout` milliseconds have passed, then every `repeat`
 * milliseconds if that is not 0. They never fire early. Time is counted from
 * uv_now(), which the loop advances once per step.
 */
struct uv_timer_s {
  UV_HANDLE_FIELDS
  /* Private to the library; kept for layout. */
  uv_timer_cb timer_cb;
  union {
    void* heap[3];
    struct uv__queue queue;
  } node;
  uint64_t timeout;
  uint64_t repeat;
  uint64_t start_id;
};

UV_EXTERN int uv_timer_init(uv_loop_t* loop, uv_timer_t* handle);
UV_EXTERN int uv_timer_start(uv_timer_t* handle,
                             uv_timer_cb cb,
                             uint64_t timeout,
                             uint64_t repeat);
UV_EXTERN int uv_timer_stop(uv_timer_t* handle);

/* Starts a repeating timer anew with its repeat value as time-out. */
UV_EXTERN int uv_timer_again(uv_timer_t* handle);
UV_EXTERN void uv_timer_set_repeat(uv_timer_t* handle, uint64_t repeat);
UV_EXTERN uint64_t uv_timer_get_repeat(const uv_timer_t* handle);
UV_EXTERN uint64_t uv_timer_get_due_in(const uv_timer_t* handle);

/*
 * Idle, prepare and check handles are called in every step of the loop: idle
 * and prepare before it polls for I/O, check right after. An active idle
 * handle also keeps the loop from waiting when it polls.
 */
struct uv_idle_s {
  UV_HANDLE_FIELDS
  /* Private to the library; kept for layout. */
  uv_idle_cb idle_cb;
  struct uv__queue queue;
};

UV_EXTERN int uv_idle_init(uv_loop_t* loop, uv_idle_t* idle);
UV_EXTERN int uv_idle_start(uv_idle_t* idle, uv_idle_cb cb);
UV_EXTERN int uv_idle_stop(uv_idle_t* idle);

struct uv_prepare_s {
  UV_HANDLE_FIELDS
  /* Private to the library; kept for layout. */
  uv_prepare_cb prepare_cb;
  struct uv__queue queue;
};

UV_EXTERN int uv_prepare_init(uv_loop_t* loop, uv_prepare_t* prepare);
UV_EXTERN int uv_prepare_start(uv_prepare_t* prepare, uv_prepare_cb cb);
UV_EXTERN int uv_prepare_stop(uv_prepare_t* prepare);

struct uv_check_s {
  UV_HANDLE_FIELDS
  /* Private to the library; kept for layout. */
  uv_check_cb check_cb;
  struct uv__queue queue;
};

UV_EXTERN int uv_check_init(uv_loop_t* loop, uv_check_t* check);
UV_EXTERN int uv_check_start(uv_check_t* check, uv_check_cb cb);
UV_EXTERN int uv_check_stop(uv_check_t* check);

/*
 * Async handles let another thread, or a signal handler, wake the loop.
 * uv_async_send() is the one function of a handle that may be called from
 * anywhere. Sends that arrive before the callback ran are told as one.
 */
struct uv_async_s {
  UV_HANDLE_FIELDS
  /* Private to the library; kept for layout. */
  uv_async_cb async_cb;
  struct uv__queue queue;
  int pending;
};

/* The handle is active from here on: there is no start or stop. */
UV_EXTERN int uv_async_init(uv_loop_t* loop,
                            uv_async_t* async,
                            uv_async_cb async_cb);
UV_EXTERN int uv_async_send(uv_async_t* async);

/*
 * Poll handles watch a descriptor that belongs to somebody else, as a rule
 * another library's socket. A regular file cannot be watched.
 */
struct uv_poll_s {
  UV_HANDLE_FIELDS
  uv_poll_cb poll_cb;
  /* Private to the library; kept for layout. */
  uv__io_t io_watcher;
};

enum uv_poll_event {
  UV_READABLE    = 1,
  UV_WRITABLE    = 2,
  UV_DISCONNECT  = 4, /* The other side will write no more. */
  UV_PRIORITIZED = 8  /* There is out-of-band data. */
};

UV_EXTERN int uv_poll_init(uv_loop_t* loop, uv_poll_t* handle, int fd);
UV_EXTERN int uv_poll_init_socket(uv_loop_t* loop,
                                  uv_poll_t* handle,
                                  uv_os_sock_t socket);

/* To start a started handle is to change its events or its callback. */
UV_EXTERN int uv_poll_start(uv_poll_t* handle, int events, uv_poll_cb cb);
UV_EXTERN int uv_poll_stop(uv_poll_t* handle);

/*
 * Signal handles deliver a signal as a callback of the loop. Any number of
 * handles, in any number of loops, may watch the same signal.
 */
struct uv_signal_s {
  UV_HANDLE_FIELDS
  uv_signal_cb signal_cb;
  int signum;
  /* Private to the library; kept for layout. */
  struct {
    struct uv_signal_s* rbe_left;
    struct uv_signal_s* rbe_right;
    struct uv_signal_s* rbe_parent;
    int rbe_color;
  } tree_entry;
  unsigned int caught_signals;
  unsigned int dispatched_signals;
};

UV_EXTERN int uv_signal_init(uv_loop_t* loop, uv_signal_t* handle);
UV_EXTERN int uv_signal_start(uv_signal_t* handle,
                              uv_signal_cb signal_cb,
                              int signum);
/* Stops by itself once the signal was delivered. */
UV_EXTERN int uv_signal_start_oneshot(uv_signal_t* handle,
                                      uv_signal_cb signal_cb,
                                      int signum);
UV_EXTERN int uv_signal_stop(uv_signal_t* handle);

/*
 * Child processes.
 *
 * What the child finds at descriptor 0, 1, 2 and so on is described by an array
 * of containers: nothing, a new pipe whose other end is `data.stream`, or a
 * descriptor or stream that the parent has already. Directions are the
 * child's: a UV_READABLE_PIPE is one the child reads.
 */
typedef enum {
  UV_IGNORE          = 0x00,
  UV_CREATE_PIPE     = 0x01,
  UV_INHERIT_FD      = 0x02,
  UV_INHERIT_STREAM  = 0x04,
  UV_READABLE_PIPE   = 0x10,
  UV_WRITABLE_PIPE   = 0x20,
  UV_NONBLOCK_PIPE   = 0x40, /* Non-blocking at the child's end too. */
  UV_OVERLAPPED_PIPE = 0x40  /* The name that flag had before. */
} uv_stdio_flags;

typedef struct uv_stdio_container_s {
  uv_stdio_flags flags;
  union {
    uv_stream_t* stream;
    int fd;
  } data;
} uv_stdio_container_t;

enum uv_process_flags {
  /* Run as `uid` or `gid` of the options. */
  UV_PROCESS_SETUID   = 0x01,
  UV_PROCESS_SETGID   = 0x02,
  /* Lead a session of its own, which may outlive the parent. The handle still
   * keeps the loop alive until it is unreferenced. */
  UV_PROCESS_DETACHED = 0x08,
  /* Without meaning on Linux, and ignored. */
  UV_PROCESS_WINDOWS_VERBATIM_ARGUMENTS   = 0x04,
  UV_PROCESS_WINDOWS_HIDE                 = 0x10,
  UV_PROCESS_WINDOWS_HIDE_CONSOLE         = 0x20,
  UV_PROCESS_WINDOWS_HIDE_GUI             = 0x40,
  UV_PROCESS_WINDOWS_FILE_PATH_EXACT_NAME = 0x80
};

typedef struct uv_process_options_s {
  uv_exit_cb exit_cb;
  const char* file;   /* The program, looked for in PATH if it has no slash. */
  char** args;        /* NULL-terminated; args[0] is the program's own name. */
  char** env;         /* "NAME=value", NULL-terminated; NULL is the parent's. */
  const char* cwd;    /* NULL is the parent's. */
  unsigned int flags; /* Of enum uv_process_flags. */
  int stdio_count;
  uv_stdio_container_t* stdio;
  uv_uid_t uid;
  uv_gid_t gid;
} uv_process_options_t;

struct uv_process_s {
  UV_HANDLE_FIELDS
  uv_exit_cb exit_cb;
  int pid;
  /* Private to the library; kept for layout. */
  struct uv__queue queue;
  int status;
};

/* Whether or not the child could be started, the handle has to be closed. */
UV_EXTERN int uv_spawn(uv_loop_t* loop,
                       uv_process_t* handle,
                       const uv_process_options_t* options);
UV_EXTERN uv_pid_t uv_process_get_pid(const uv_process_t* handle);
UV_EXTERN int uv_process_kill(uv_process_t* handle, int signum);
UV_EXTERN int uv_kill(int pid, int signum);

/* Marks the descriptors this process inherited as not to be inherited again. */
UV_EXTERN void uv_disable_stdio_inheritance(void);

#ifdef __cplusplus
}
#endif

#endif /* BLACKLIGHT_UV_HANDLES_H */
