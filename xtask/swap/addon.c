/* A native addon that uses the loop of the Node.js that has loaded it. */
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

struct uses {
  uv_work_t work;
  uv_timer_t timer;
  uv_async_t async;
  int done;
};

static void say(const char *what) {
  printf("%s\n", what);
  fflush(stdout);
}

static void work(uv_work_t *request) { ((struct uses *) request->data)->done = 1; }

static void after_work(uv_work_t *request, int status) {
  if (status == 0 && ((struct uses *) request->data)->done) say("work");
}

static void on_async(uv_async_t *async) {
  say("async");
  uv_close((uv_handle_t *) async, NULL);
}

static void on_timer(uv_timer_t *timer) {
  struct uses *uses = timer->data;
  say("timer");
  uv_close((uv_handle_t *) timer, NULL);
  uv_async_send(&uses->async);
}

static napi_value use(napi_env env, napi_callback_info info) {
  struct uses *uses = calloc(1, sizeof *uses);
  uv_loop_t *loop;
  (void) info;
  if (uses == NULL || napi_get_uv_event_loop(env, &loop) != napi_ok) abort();
  say(uv_backend_fd(loop) < 0 ? "ours" : "carried");
  uses->work.data = uses;
  if (uv_queue_work(loop, &uses->work, work, after_work) != 0) abort();
  if (uv_async_init(loop, &uses->async, on_async) != 0) abort();
  if (uv_timer_init(loop, &uses->timer) != 0) abort();
  uses->timer.data = uses;
  if (uv_timer_start(&uses->timer, on_timer, 1, 0) != 0) abort();
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "use", NAPI_AUTO_LENGTH, use, NULL, &function) != napi_ok) abort();
  if (napi_set_named_property(env, exports, "use", function) != napi_ok) abort();
  return exports;
}
