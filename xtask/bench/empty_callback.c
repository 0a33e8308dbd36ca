/* What it takes to call back a function that does nothing: a thousand timers that are due at once,
 * and a thousand idle handles. Only the loop's own processor time counts, and not the starting of
 * timers. */
#include "../echo/common.h"
#include <stdint.h>
#include <time.h>
#include <uv.h>

#define HANDLES 1000
#define TURNS 3000

static uv_loop_t* loop;
static long called;

static void on_timer(uv_timer_t* timer) {
  (void) timer;
  called++;
}

static void on_idle(uv_idle_t* idle) {
  (void) idle;
  called++;
}

static double now_ns(void) {
  struct timespec now;
  MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

/* A turn, in which as many callbacks run as there are handles. */
static double turn(void) {
  long before = called;
  double start = now_ns();
  uv_run(loop, UV_RUN_NOWAIT);
  double took = now_ns() - start;
  MUST(called == before + HANDLES);
  return took;
}

static double timers(void) {
  static uv_timer_t all[HANDLES];
  double took = 0;
  for (int i = 0; i < HANDLES; i++)
    MUST(uv_timer_init(loop, &all[i]) == 0);
  for (int round = 0; round < TURNS; round++) {
    for (int i = 0; i < HANDLES; i++)
      MUST(uv_timer_start(&all[i], on_timer, 0, 0) == 0);
    took += turn();
  }
  for (int i = 0; i < HANDLES; i++)
    uv_close((uv_handle_t*) &all[i], NULL);
  return took;
}

static double idles(void) {
  static uv_idle_t all[HANDLES];
  double took = 0;
  for (int i = 0; i < HANDLES; i++) {
    MUST(uv_idle_init(loop, &all[i]) == 0);
    MUST(uv_idle_start(&all[i], on_idle) == 0);
  }
  for (int round = 0; round < TURNS; round++)
    took += turn();
  for (int i = 0; i < HANDLES; i++)
    uv_close((uv_handle_t*) &all[i], NULL);
  return took;
}

int main(void) {
  loop = uv_default_loop();
  double callbacks = (double) HANDLES * TURNS;
  printf("timers: %f ns/callback\n", timers() / callbacks);
  uv_run(loop, UV_RUN_DEFAULT);
  printf("idle: %f ns/callback\n", idles() / callbacks);
  uv_run(loop, UV_RUN_DEFAULT);
  MUST(uv_loop_close(loop) == 0);
  return 0;
}
