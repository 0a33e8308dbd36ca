/* The loop's clock: read once in a turn, so that callbacks of a turn agree on what time it is.
 *
 *   cc clock.c -luv && ./a.out
 */
#include "check.h"

static void on_timer(uv_timer_t* timer) {
  uv_loop_t* loop = timer->loop;
  uint64_t before = uv_now(loop), begun = uv_hrtime();
  while (uv_hrtime() - begun < 20 * 1000000) {
    /* The callback computes for 20 ms. */
  }
  printf("the loop's clock after 20 ms in a callback: %s\n",
         uv_now(loop) == before ? "unchanged" : "has moved");
  uv_update_time(loop);
  printf("after uv_update_time: %s\n",
         uv_now(loop) - before >= 20 ? "20 ms or more later" : "less than 20 ms later");
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_timer_t timer;
  uv_timer_init(loop, &timer);
  check(uv_timer_start(&timer, on_timer, 0, 0), "uv_timer_start");
  uv_run(loop, UV_RUN_DEFAULT);
  return 0;
}
