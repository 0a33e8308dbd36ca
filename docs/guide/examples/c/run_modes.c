/* The three ways to run the loop, and what they return: whether there is more to do.
 *
 *   cc run_modes.c -luv && ./a.out
 */
#include "check.h"

static void on_timer(uv_timer_t* timer) {
  printf("  a timer of %s\n", (const char*) timer->data);
}

static void on_stop(uv_timer_t* timer) {
  printf("  a timer stops the loop\n");
  uv_stop(timer->loop);
}

static void run(uv_loop_t* loop, uv_run_mode mode, const char* name) {
  printf("%s\n", name);
  int more = uv_run(loop, mode);
  printf("  more to do: %s\n", more ? "yes" : "no");
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_timer_t soon, later;
  uv_timer_init(loop, &soon);
  uv_timer_init(loop, &later);
  soon.data = "10 ms";
  later.data = "an hour";
  check(uv_timer_start(&later, on_timer, 3600 * 1000, 0), "uv_timer_start");
  run(loop, UV_RUN_NOWAIT, "no wait: nothing is due yet");
  check(uv_timer_start(&soon, on_timer, 10, 0), "uv_timer_start");
  run(loop, UV_RUN_ONCE, "once: waits until one callback has run");
  check(uv_timer_start(&soon, on_stop, 10, 0), "uv_timer_start");
  run(loop, UV_RUN_DEFAULT, "default: until nothing is left, or somebody stops it");
  uv_unref((uv_handle_t*) &later);
  run(loop, UV_RUN_DEFAULT, "default: an unreferenced timer does not keep it");
  return 0;
}
