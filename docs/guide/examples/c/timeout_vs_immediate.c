/* A timer of zero against a check handle, which is what Node's immediates are, both started in a callback
 * of the poll phase: the check comes first.
 *
 *   cc timeout_vs_immediate.c -luv && ./a.out
 *
 * The check phase follows right after the poll phase, and the timers only in the next turn. */
#include "check.h"

static uv_timer_t timer;
static uv_check_t immediate;

static void on_timer(uv_timer_t* handle) {
  (void) handle;
  printf("timeout\n");
}

static void on_check(uv_check_t* handle) {
  printf("immediate\n");
  check(uv_check_stop(handle), "uv_check_stop");
}

static void on_stat(uv_fs_t* request) {
  printf("the file's status is there\n");
  check(uv_timer_start(&timer, on_timer, 0, 0), "uv_timer_start");
  check(uv_check_start(&immediate, on_check), "uv_check_start");
  uv_fs_req_cleanup(request);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_fs_t request;
  uv_timer_init(loop, &timer);
  uv_check_init(loop, &immediate);
  check(uv_fs_stat(loop, &request, "/proc/self/comm", on_stat), "uv_fs_stat");
  uv_run(loop, UV_RUN_DEFAULT);
  return 0;
}
