/* A timer against I/O: a callback of the poll phase keeps a due timer waiting.
 *
 *   cc slow_io.c -luv && ./a.out
 *
 * A timer is set to 1 s. A file is opened, and the callback computes until the timer is 10 ms overdue.
 * A time-out is the least time that passes, and never the most. */
#include "check.h"
#include <fcntl.h>

static uint64_t scheduled_ns;

static int is_overdue(void) {
  return uv_hrtime() - scheduled_ns >= 1010 * 1000000;
}

static void on_timer(uv_timer_t* timer) {
  (void) timer;
  printf("the timer, not before 1010 ms: %s\n", is_overdue() ? "true" : "false");
}

static void on_open(uv_fs_t* request) {
  uv_fs_t closing;
  printf("the file is open\n");
  while (!is_overdue()) {
    /* Do nothing. */
  }
  printf("the callback is over\n");
  check(uv_fs_close(NULL, &closing, (uv_file) request->result, NULL), "uv_fs_close");
  uv_fs_req_cleanup(&closing);
  uv_fs_req_cleanup(request);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_timer_t timer;
  uv_fs_t request;
  scheduled_ns = uv_hrtime();
  uv_timer_init(loop, &timer);
  check(uv_timer_start(&timer, on_timer, 1000, 0), "uv_timer_start");
  check(uv_fs_open(loop, &request, "/proc/self/comm", O_RDONLY, 0, on_open), "uv_fs_open");
  uv_run(loop, UV_RUN_DEFAULT);
  return 0;
}
