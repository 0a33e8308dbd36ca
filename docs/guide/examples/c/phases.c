/* One callback for each phase of a turn of the loop.
 *
 *   cc phases.c -luv && ./a.out
 *
 * The handles are started in the opposite order of that in which the loop calls them. */
#include "check.h"

static uv_check_t check_handle;
static uv_prepare_t prepare;
static uv_idle_t idle;
static uv_timer_t timer;
static uv_async_t async;

static void on_close(uv_handle_t* handle) {
  printf("%s: closed\n", uv_handle_type_name(handle->type));
}

static void on_check(uv_check_t* handle) {
  printf("check: right after the poll\n");
  uv_close((uv_handle_t*) handle, on_close);
  uv_close((uv_handle_t*) &prepare, on_close);
  uv_close((uv_handle_t*) &idle, on_close);
  uv_close((uv_handle_t*) &async, on_close);
  uv_close((uv_handle_t*) &timer, on_close);
}

static void on_async(uv_async_t* handle) {
  (void) handle;
  printf("poll: a wake-up was sent\n");
}

static void on_prepare(uv_prepare_t* handle) {
  (void) handle;
  printf("prepare: right before the poll\n");
}

static void on_idle(uv_idle_t* handle) {
  (void) handle;
  printf("idle: in each turn, and the poll does not wait\n");
}

static void on_timer(uv_timer_t* handle) {
  (void) handle;
  printf("timers: it is due at once\n");
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_check_init(loop, &check_handle);
  check(uv_check_start(&check_handle, on_check), "uv_check_start");
  check(uv_async_init(loop, &async, on_async), "uv_async_init");
  check(uv_async_send(&async), "uv_async_send");
  uv_prepare_init(loop, &prepare);
  check(uv_prepare_start(&prepare, on_prepare), "uv_prepare_start");
  uv_idle_init(loop, &idle);
  check(uv_idle_start(&idle, on_idle), "uv_idle_start");
  uv_timer_init(loop, &timer);
  check(uv_timer_start(&timer, on_timer, 0, 0), "uv_timer_start");
  uv_run(loop, UV_RUN_DEFAULT);
  check(uv_loop_close(loop), "uv_loop_close");
  return 0;
}
