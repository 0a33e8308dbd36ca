/* Timers: the order of their due times, equal ones in the order of starting, and a repeating one.
 *
 *   cc timers.c -luv && ./a.out
 *
 * A timer never fires early; how late it is depends on what else the loop has to do. */
#include "check.h"

static struct plan {
  const char* name;
  int after_ms;
} plans[] = {{"60 ms", 60}, {"20 ms, started first", 20}, {"20 ms, started second", 20}};

static uint64_t begun_ns;
static uv_timer_t repeating;

static void on_repeat(uv_timer_t* timer) {
  static int ticks;
  printf("tick %d\n", ++ticks);
  if (ticks == 3)
    uv_timer_stop(timer);
}

static void on_once(uv_timer_t* timer) {
  const struct plan* plan = timer->data;
  int is_early = uv_hrtime() - begun_ns < plan->after_ms * 1000000u;
  printf("%s%s\n", plan->name, is_early ? ", and it is early" : "");
  if (plan == plans)
    check(uv_timer_start(&repeating, on_repeat, 5, 5), "uv_timer_start");
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_timer_t timers[3];
  uv_timer_init(loop, &repeating);
  begun_ns = uv_hrtime();
  uv_update_time(loop);
  for (int at = 0; at < 3; at++) {
    uv_timer_init(loop, &timers[at]);
    timers[at].data = &plans[at];
    check(uv_timer_start(&timers[at], on_once, plans[at].after_ms, 0), "uv_timer_start");
  }
  uv_run(loop, UV_RUN_DEFAULT);
  return 0;
}
