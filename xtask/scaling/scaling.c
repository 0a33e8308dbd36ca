/*
 * How the cost of one operation grows with the number of handles that have
 * nothing to do with it. Prints a line for each number: nanoseconds per wake-up
 * by an async handle, per restart of a timer among that many with random
 * time-outs, and per restart of one among that many with the same time-out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define OPERATIONS 20000

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static uint64_t state = 88172645463325252u;
static int delivered;

static uint64_t random_number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static void on_async(uv_async_t* handle) {
  (void) handle;
  delivered++;
}

static void on_timer(uv_timer_t* handle) {
  (void) handle;
}

static double wake_up(unsigned count) {
  uv_async_t* handles = calloc(count, sizeof(*handles));
  uv_loop_t loop;
  uint64_t begun;
  double spent;
  unsigned i;

  CHECK(handles != NULL && uv_loop_init(&loop) == 0);
  for (i = 0; i < count; i++)
    CHECK(uv_async_init(&loop, &handles[i], on_async) == 0);
  delivered = 0;
  begun = uv_hrtime();
  for (i = 0; delivered < OPERATIONS / 20; i++) {
    CHECK(uv_async_send(&handles[random_number() % count]) == 0);
    uv_run(&loop, UV_RUN_NOWAIT);
  }
  spent = (double) (uv_hrtime() - begun) / (OPERATIONS / 20);
  for (i = 0; i < count; i++)
    uv_close((uv_handle_t*) &handles[i], NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK(uv_loop_close(&loop) == 0);
  free(handles);
  return spent;
}

static double restart(unsigned count, int same) {
  uv_timer_t* handles = calloc(count, sizeof(*handles));
  uv_loop_t loop;
  uint64_t begun;
  double spent;
  unsigned i;

#define TIMEOUT() (same ? 3600000 : 3600000 + random_number() % 3600000)
  CHECK(handles != NULL && uv_loop_init(&loop) == 0);
  for (i = 0; i < count; i++) {
    CHECK(uv_timer_init(&loop, &handles[i]) == 0);
    CHECK(uv_timer_start(&handles[i], on_timer, TIMEOUT(), 0) == 0);
  }
  begun = uv_hrtime();
  for (i = 0; i < OPERATIONS * 10; i++)
    uv_timer_start(&handles[random_number() % count], on_timer, TIMEOUT(), 0);
  spent = (double) (uv_hrtime() - begun) / (OPERATIONS * 10);
  for (i = 0; i < count; i++)
    uv_close((uv_handle_t*) &handles[i], NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK(uv_loop_close(&loop) == 0);
  free(handles);
  return spent;
}

int main(void) {
  static const unsigned counts[] = {1000, 100000, 1000000};
  unsigned i;

  for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
    printf("%u %.0f %.0f %.0f\n", counts[i], wake_up(counts[i]),
           restart(counts[i], 0), restart(counts[i], 1));
  return 0;
}
