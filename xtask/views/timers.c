/* Two timers: one whose callback computes for 300 ms, and one that comes once in an hour. */
#include <stdio.h>
#include <uv.h>

static volatile double sum;

__attribute__((noinline)) static void grind(unsigned milliseconds) {
  uint64_t end = uv_hrtime() + milliseconds * 1000000ull;
  while (uv_hrtime() < end)
    for (int i = 0; i < 1000; i++) sum += i;
  /* The call is not the last thing that happens here, so that the caller stays on the stack. */
  sum = 0;
}

static void on_tick(uv_timer_t* timer) {
  grind(300);
  uv_timer_again(timer);
}

static void on_hour(uv_timer_t* timer) {
  (void) timer;
}

int main(void) {
  uv_timer_t tick, hour;
  uv_timer_init(uv_default_loop(), &tick);
  uv_timer_init(uv_default_loop(), &hour);
  uv_timer_start(&tick, on_tick, 10, 20);
  uv_timer_start(&hour, on_hour, 3600 * 1000, 0);
  puts("ready");
  fflush(stdout);
  return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
