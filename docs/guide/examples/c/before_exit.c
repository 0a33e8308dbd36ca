/* The loop ends when nothing keeps it alive. The program is told so, and runs it again if somebody has found
 * work: what Node does around its loop.
 *
 *   cc before_exit.c -luv && ./a.out
 */
#include "check.h"

static uv_timer_t timer;

static void on_timer(uv_timer_t* handle) {
  printf("the timer of the %s run\n", (const char*) handle->data);
}

static void start(const char* run) {
  timer.data = (void*) run;
  check(uv_timer_start(&timer, on_timer, 1, 0), "uv_timer_start");
}

static void before_exit(void) {
  static int rounds;
  printf("the loop has ended\n");
  if (++rounds == 1)
    start("second");
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_timer_init(loop, &timer);
  start("first");
  do {
    uv_run(loop, UV_RUN_DEFAULT);
    before_exit();
  } while (uv_loop_alive(loop));
  return 0;
}
