/*
 * The loop: what brings handles and requests to life.
 *
 * A loop belongs to one thread at a time. Of all that is declared here, only
 * uv_async_send() may be called from another.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef BLACKLIGHT_UV_LOOP_H
#define BLACKLIGHT_UV_LOOP_H

#include "base.h"
#include "files.h"
#include "handles.h"
#include "network.h"
#include "streams.h"
#include "threads.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As large as the largest handle, and as the largest request. */
#define UV__ANY_MEMBER(upper, lower) uv_##lower##_t lower;

union uv_any_handle {
  UV_HANDLE_TYPE_MAP(UV__ANY_MEMBER)
};

union uv_any_req {
  UV_REQ_TYPE_MAP(UV__ANY_MEMBER)
};

#undef UV__ANY_MEMBER

struct uv_loop_s {
  void* data; /* The program's; never touched. */
  /* Private to the library; kept for layout. */
  unsigned int active_handles;
  struct uv__queue handle_queue;
  union {
    void* unused;
    unsigned int count;
  } active_reqs;
  void* internal_fields;
  unsigned int stop_flag;
  unsigned long flags;
  int backend_fd;
  struct uv__queue pending_queue;
  struct uv__queue watcher_queue;
  uv__io_t** watchers;
  unsigned int nwatchers;
  unsigned int nfds;
  struct uv__queue wq;
  uv_mutex_t wq_mutex;
  uv_async_t wq_async;
  uv_rwlock_t cloexec_lock;
  uv_handle_t* closing_handles;
  struct uv__queue process_handles;
  struct uv__queue prepare_handles;
  struct uv__queue check_handles;
  struct uv__queue idle_handles;
  struct uv__queue async_handles;
  void (*async_unused)(void);
  uv__io_t async_io_watcher;
  int async_wfd;
  struct {
    void* min;
    unsigned int nelts;
  } timer_heap;
  uint64_t timer_counter;
  uint64_t time;
  int signal_pipefd[2];
  uv__io_t signal_io_watcher;
  uv_signal_t child_watcher;
  int emfile_fd;
  uv__io_t inotify_read_watcher;
  void* inotify_watchers;
  int inotify_fd;
};

/*
 * A loop of the program's own, or the one that the library keeps. Closing
 * fails with UV_EBUSY while handles or requests are left.
 */
UV_EXTERN uv_loop_t* uv_default_loop(void);
UV_EXTERN int uv_loop_init(uv_loop_t* loop);
UV_EXTERN int uv_loop_close(uv_loop_t* loop);
UV_EXTERN size_t uv_loop_size(void);
UV_EXTERN void* uv_loop_get_data(const uv_loop_t* loop);
UV_EXTERN void uv_loop_set_data(uv_loop_t* loop, void* data);

/* Deprecated: uv_loop_init() and uv_loop_close(), with the memory provided. */
UV_EXTERN uv_loop_t* uv_loop_new(void);
UV_EXTERN void uv_loop_delete(uv_loop_t* loop);

/* Options are to be set before the loop runs. */
typedef enum {
  /* Block a signal while polling: SIGPROF, passed as an int. */
  UV_LOOP_BLOCK_SIGNAL,
  /* Measure the time spent waiting, for uv_metrics_idle_time(). */
  UV_METRICS_IDLE_TIME,
  /* Let the kernel take file requests off an io_uring by itself. */
  UV_LOOP_USE_IO_URING_SQPOLL
} uv_loop_option;

/* Lets a program find out with #ifdef whether the option exists. */
#define UV_LOOP_USE_IO_URING_SQPOLL UV_LOOP_USE_IO_URING_SQPOLL

UV_EXTERN int uv_loop_configure(uv_loop_t* loop, uv_loop_option option, ...);

/* To be called in the child after fork(2), before the loop is used there. */
UV_EXTERN int uv_loop_fork(uv_loop_t* loop);

/*
 * Running: until nothing is left to wait for; one step, waiting if need be; or
 * one step without waiting. The result is not 0 if there is more to do.
 */
typedef enum {
  UV_RUN_DEFAULT,
  UV_RUN_ONCE,
  UV_RUN_NOWAIT
} uv_run_mode;

UV_EXTERN int uv_run(uv_loop_t* loop, uv_run_mode mode);
/* Makes uv_run() return after the step it is in, or the next one. */
UV_EXTERN void uv_stop(uv_loop_t* loop);
UV_EXTERN int uv_loop_alive(const uv_loop_t* loop);

/* The loop's clock, in milliseconds: the time at which the current step
 * began, unless updated since. */
UV_EXTERN uint64_t uv_now(const uv_loop_t* loop);
UV_EXTERN void uv_update_time(uv_loop_t* loop);

/* For embedding into another loop: poll this descriptor for at most that many
 * milliseconds (-1 is for ever), then run with UV_RUN_NOWAIT. */
UV_EXTERN int uv_backend_fd(const uv_loop_t* loop);
UV_EXTERN int uv_backend_timeout(const uv_loop_t* loop);

/* Visits every handle that is not closed yet; the callback may close it. */
UV_EXTERN void uv_walk(uv_loop_t* loop, uv_walk_cb walk_cb, void* arg);

/* For debugging by eye: [R]eferenced, [A]ctive, [I]nternal. */
UV_EXTERN void uv_print_all_handles(uv_loop_t* loop, FILE* stream);
UV_EXTERN void uv_print_active_handles(uv_loop_t* loop, FILE* stream);

/*
 * Measurements: steps made, events handled, and events that were already
 * there when the loop polled.
 */
struct uv_metrics_s {
  uint64_t loop_count;
  uint64_t events;
  uint64_t events_waiting;
  /* Room for more. */
  uint64_t* reserved[13];
};

UV_EXTERN int uv_metrics_info(uv_loop_t* loop, uv_metrics_t* metrics);
/* In nanoseconds. */
UV_EXTERN uint64_t uv_metrics_idle_time(uv_loop_t* loop);

#ifdef __cplusplus
}
#endif

#endif /* BLACKLIGHT_UV_LOOP_H */
