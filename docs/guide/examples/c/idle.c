/* An idle handle: called in each turn, and the loop does not sleep while there is one.
 *
 *   cc idle.c -luv && ./a.out
 *
 * It counts the turns, and stops itself after a thousand; then nothing keeps the loop alive. */
#include "check.h"

static int turns;

static void on_idle(uv_idle_t* handle) {
  if (++turns == 1000)
    uv_idle_stop(handle);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_idle_t idle;
  uv_idle_init(loop, &idle);
  check(uv_idle_start(&idle, on_idle), "uv_idle_start");
  printf("how long the poll may wait: %d\n", uv_backend_timeout(loop));
  uv_run(loop, UV_RUN_DEFAULT);
  printf("%d turns\n", turns);
  return 0;
}
