/* The parts of a loop that ask the kernel for little, each done so many times.
 *
 *   parts <part> <times>
 *
 * What is counted is the difference between two runs, so that what a program does once does
 * not count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define MUST(it) \
  do { \
    if (!(it)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #it); \
      exit(1); \
    } \
  } while (0)

static uv_loop_t* loop;
static long times, done;

static void forget(uv_handle_t* handle) {
  (void) handle;
}

static void on_timer(uv_timer_t* timer) {
  (void) timer;
  done++;
}

/* Timers of a few time-outs, started, fired and closed. */
static void timers(void) {
  uv_timer_t* all = calloc(times, sizeof *all);
  for (long i = 0; i < times; i++) {
    MUST(uv_timer_init(loop, &all[i]) == 0);
    MUST(uv_timer_start(&all[i], on_timer, i % 4, 0) == 0);
  }
  MUST(uv_run(loop, UV_RUN_DEFAULT) == 0);
  MUST(done == times);
  for (long i = 0; i < times; i++)
    uv_close((uv_handle_t*) &all[i], forget);
  MUST(uv_run(loop, UV_RUN_DEFAULT) == 0);
}

/* Starting a timer anew among a thousand that are due at all times. */
static void restarts(void) {
  static uv_timer_t all[1000];
  unsigned random = 1;
  for (long i = 0; i < 1000; i++)
    MUST(uv_timer_init(loop, &all[i]) == 0);
  for (long i = 0; i < times; i++) {
    random = random * 1664525 + 1013904223;
    MUST(uv_timer_start(&all[i % 1000], on_timer, 1000 + random % 100000, 0) == 0);
  }
}

static void on_idle(uv_idle_t* idle) {
  if (++done == times)
    uv_idle_stop(idle);
}

static void on_prepare(uv_prepare_t* prepare) {
  (void) prepare;
}

static void on_check(uv_check_t* check) {
  (void) check;
}

/* Turns of a loop with a handle in each of the phases. */
static void phases(void) {
  uv_idle_t idle;
  uv_prepare_t prepare;
  uv_check_t check;
  MUST(uv_idle_init(loop, &idle) == 0 && uv_idle_start(&idle, on_idle) == 0);
  MUST(uv_prepare_init(loop, &prepare) == 0 && uv_prepare_start(&prepare, on_prepare) == 0);
  MUST(uv_check_init(loop, &check) == 0 && uv_check_start(&check, on_check) == 0);
  uv_unref((uv_handle_t*) &prepare);
  uv_unref((uv_handle_t*) &check);
  MUST(uv_run(loop, UV_RUN_DEFAULT) == 0);
}

static void on_async(uv_async_t* async) {
  if (++done == times)
    uv_close((uv_handle_t*) async, forget);
  else
    MUST(uv_async_send(async) == 0);
}

/* An async handle that sends to itself. */
static void wakeups(void) {
  uv_async_t async;
  MUST(uv_async_init(loop, &async, on_async) == 0);
  MUST(uv_async_send(&async) == 0);
  MUST(uv_run(loop, UV_RUN_DEFAULT) == 0);
}

static void on_poll(uv_poll_t* poll, int status, int events) {
  (void) events;
  MUST(status == 0);
  if (++done == times)
    uv_close((uv_handle_t*) poll, forget);
}

/* A descriptor that is always ready. */
static void dispatch(void) {
  uv_poll_t poll;
  int fds[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  MUST(uv_poll_init(loop, &poll, fds[0]) == 0);
  MUST(uv_poll_start(&poll, UV_WRITABLE, on_poll) == 0);
  MUST(uv_run(loop, UV_RUN_DEFAULT) == 0);
}

static uv_write_t request;
static char room[64];

static void on_write(uv_write_t* write, int status) {
  (void) write;
  MUST(status == 0);
}

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  (void) handle;
  (void) suggested;
  *buffer = uv_buf_init(room, sizeof room);
}

/* What has been read is written back. */
static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  uv_buf_t answer = uv_buf_init(buffer->base, count);
  MUST(count > 0);
  if (++done < times)
    MUST(uv_write(&request, stream, &answer, 1, on_write) == 0);
}

/* A message that goes around between two pipe handles. */
static void messages(void) {
  uv_pipe_t ends[2];
  uv_buf_t first = uv_buf_init(room, 32);
  int fds[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  for (int i = 0; i < 2; i++) {
    MUST(uv_pipe_init(loop, &ends[i], 0) == 0 && uv_pipe_open(&ends[i], fds[i]) == 0);
    MUST(uv_read_start((uv_stream_t*) &ends[i], on_alloc, on_read) == 0);
  }
  MUST(uv_write(&request, (uv_stream_t*) &ends[0], &first, 1, on_write) == 0);
  while (done < times)
    MUST(uv_run(loop, UV_RUN_ONCE) != 0);
}

/* Writes that wait in the queue of a stream, since its peer does not read. */
static void queue(void) {
  uv_pipe_t end;
  uv_write_t* writes = calloc(times + 1, sizeof *writes);
  static char large[1 << 20];
  uv_buf_t small = uv_buf_init(large, 64), first = uv_buf_init(large, sizeof large);
  int fds[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  MUST(uv_pipe_init(loop, &end, 0) == 0 && uv_pipe_open(&end, fds[0]) == 0);
  MUST(uv_write(&writes[times], (uv_stream_t*) &end, &first, 1, NULL) == 0);
  MUST(uv_stream_get_write_queue_size((uv_stream_t*) &end) > 0);
  for (long i = 0; i < times; i++)
    MUST(uv_write(&writes[i], (uv_stream_t*) &end, &small, 1, NULL) == 0);
  uv_close((uv_handle_t*) &end, forget);
  MUST(uv_run(loop, UV_RUN_DEFAULT) == 0);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {
      {"timers", timers},     {"restarts", restarts}, {"phases", phases}, {"wakeups", wakeups},
      {"dispatch", dispatch}, {"messages", messages}, {"queue", queue},
  };
  MUST(argc == 3);
  times = atol(argv[2]);
  loop = uv_default_loop();
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (strcmp(argv[1], parts[i].name) == 0) {
      parts[i].run();
      return 0;
    }
  }
  fprintf(stderr, "there is no part %s\n", argv[1]);
  return 1;
}
