/* For how long the poll phase may wait: the rules, one after the other.
 *
 *   cc backend_timeout.c -luv && ./a.out
 *
 * A program with a loop of its own asks for this before it waits for the descriptor of this one. */
#include "check.h"

static uv_loop_t* loop;

static void say(const char* when) {
  int timeout = uv_backend_timeout(loop);
  if (timeout < 0)
    printf("%s: for ever\n", when);
  else if (timeout == 0)
    printf("%s: not at all\n", when);
  else
    printf("%s: for some time, and at most %d s\n", when, (timeout + 999) / 1000);
}

static void on_async(uv_async_t* async) {
  (void) async;
}

static void on_timer(uv_timer_t* timer) {
  (void) timer;
}

static void on_idle(uv_idle_t* idle) {
  (void) idle;
}

int main(void) {
  loop = uv_default_loop();
  uv_async_t async;
  uv_timer_t timer;
  uv_idle_t idle;
  say("no handle and no request");
  check(uv_async_init(loop, &async, on_async), "uv_async_init");
  /* What the loop waits for has to be told to the kernel first, for which it takes a turn. */
  uv_run(loop, UV_RUN_NOWAIT);
  say("an async handle, which anybody may send to");
  uv_timer_init(loop, &timer);
  check(uv_timer_start(&timer, on_timer, 10000, 0), "uv_timer_start");
  say("a timer of 10 s");
  check(uv_timer_start(&timer, on_timer, 0, 0), "uv_timer_start");
  say("a timer that is due");
  check(uv_timer_start(&timer, on_timer, 10000, 0), "uv_timer_start");
  uv_idle_init(loop, &idle);
  check(uv_idle_start(&idle, on_idle), "uv_idle_start");
  say("an idle handle");
  check(uv_idle_stop(&idle), "uv_idle_stop");
  uv_stop(loop);
  say("the loop is to stop");
  uv_run(loop, UV_RUN_DEFAULT);
  uv_close((uv_handle_t*) &async, NULL);
  say("a handle that is closing");
  uv_close((uv_handle_t*) &timer, NULL);
  uv_close((uv_handle_t*) &idle, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  check(uv_loop_close(loop), "uv_loop_close");
  return 0;
}
