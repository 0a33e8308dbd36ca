/* The order of callbacks, on a loop of its own whose handles need no descriptor. Every callback does what
 * was decided beforehand: it starts, stops and closes others, or itself. */
#include <stdlib.h>
#include <string.h>
#include "differ.h"

enum { OBJECTS = 7, PLANS = 4, FOREVER = 1000000 };
enum { NOTHING, START, START_LATER, STOP, CLOSE, AGAIN, REPEAT, UNREF, REF, HALT, VERBS };

struct object {
  union uv_any_handle any; /* First, so that a handle's address is its object's. */
  int kind, closed, calls;
  struct { int verb, target; } plan[PLANS];
};
static struct object objects[OBJECTS];
static uv_loop_t own;
static uv_idle_t keeper; /* A run for one event would wait for ever if a callback stops the last handle. */
static char trace[150];

static void note(char what, void* handle) {
  size_t at = strlen(trace);
  if (at + 3 > sizeof trace) return;
  trace[at] = what;
  trace[at + 1] = (char) ('0' + ((struct object*) handle - objects));
}

static void on_timer(uv_timer_t* handle);
static void on_idle(uv_idle_t* handle);
static void on_prepare(uv_prepare_t* handle);
static void on_check(uv_check_t* handle);
static void on_async(uv_async_t* handle);
static void on_closed(uv_handle_t* handle);

static int start(struct object* object, unsigned later) {
  switch (object->kind) {
    case TIMER: return uv_timer_start(&object->any.timer, on_timer, later, 0);
    case IDLE: return uv_idle_start(&object->any.idle, on_idle);
    case PREPARE: return uv_prepare_start(&object->any.prepare, on_prepare);
    case CHECK: return uv_check_start(&object->any.check, on_check);
    default: return uv_async_send(&object->any.async);
  }
}

static int stop(struct object* object) {
  switch (object->kind) {
    case TIMER: return uv_timer_stop(&object->any.timer);
    case IDLE: return uv_idle_stop(&object->any.idle);
    case PREPARE: return uv_prepare_stop(&object->any.prepare);
    case CHECK: return uv_check_stop(&object->any.check);
    default: return 0;
  }
}

static void act(int verb, int target) {
  struct object* object = &objects[target];
  uv_handle_t* handle = &object->any.handle;
  if (uv_is_closing(handle)) return;
  switch (verb) {
    case START: start(object, 0); break;
    case START_LATER: start(object, FOREVER); break;
    case STOP: stop(object); break;
    case CLOSE: uv_close(handle, on_closed); break;
    case AGAIN: if (object->kind == TIMER) uv_timer_again(&object->any.timer); break;
    case REPEAT: if (object->kind == TIMER) uv_timer_set_repeat(&object->any.timer, FOREVER); break;
    case UNREF: uv_unref(handle); break;
    case REF: uv_ref(handle); break;
    case HALT: uv_stop(&own); break;
  }
}

static void called(char what, void* handle) {
  struct object* object = handle;
  note(what, handle);
  if (object->calls < PLANS) act(object->plan[object->calls].verb, object->plan[object->calls].target);
  object->calls++;
}
static void on_timer(uv_timer_t* handle) { called('t', handle); }
static void on_idle(uv_idle_t* handle) { called('i', handle); }
static void on_prepare(uv_prepare_t* handle) { called('p', handle); }
static void on_check(uv_check_t* handle) { called('c', handle); }
static void on_async(uv_async_t* handle) { called('a', handle); }
static void on_closed(uv_handle_t* handle) {
  ((struct object*) handle)->closed = 1;
  called('x', handle);
}
static void on_walk(uv_handle_t* handle, void* arg) {
  (void) arg;
  if (handle == (uv_handle_t*) &keeper) return;
  note(uv_is_active(handle) ? 'w' : 'v', handle);
}

static void make(int at) {
  static const int kinds[] = {TIMER, TIMER, TIMER, IDLE, PREPARE, CHECK};
  struct object* object = &objects[at];
  /* Of several asyncs each library has an order of its own. */
  object->kind = at == 0 && below(2) ? ASYNC : kinds[below(6)];
  switch (object->kind) {
    case TIMER: uv_timer_init(&own, &object->any.timer); break;
    case IDLE: uv_idle_init(&own, &object->any.idle); break;
    case PREPARE: uv_prepare_init(&own, &object->any.prepare); break;
    case CHECK: uv_check_init(&own, &object->any.check); break;
    default: uv_async_init(&own, &object->any.async, on_async); break;
  }
  for (int i = 0; i < PLANS; i++) {
    object->plan[i].verb = (int) below(VERBS);
    object->plan[i].target = (int) below(OBJECTS);
  }
}

static void on_keeper(uv_idle_t* idle) { (void) idle; }
static int sign(int number) { return (number > 0) - (number < 0); }

static void run(uv_run_mode mode) {
  int timeout = uv_backend_timeout(&own), result;
  uv_metrics_t metrics;
  if (mode == UV_RUN_ONCE) uv_idle_start(&keeper, on_keeper);
  memset(trace, 0, sizeof trace);
  result = uv_run(&own, mode);
  if (mode == UV_RUN_ONCE) uv_idle_stop(&keeper);
  uv_metrics_info(&own, &metrics);
  say("  run %d after %d: %d, %s turns %d", mode, sign(timeout), result, trace, (int) metrics.loop_count);
}

int order_op(void) {
  uv_timer_t* timer = NULL;
  if (uv_loop_init(&own) != 0) abort();
  memset(objects, 0, sizeof objects);
  uv_idle_init(&own, &keeper);
  for (int i = 0; i < OBJECTS; i++) make(i);
  say("order");
  for (unsigned rounds = 2 + below(5); rounds > 0; rounds--) {
    for (unsigned count = below(4); count > 0; count--) {
      int verb = (int) below(VERBS), target = (int) below(OBJECTS);
      act(verb, target);
    }
    run(below(3) ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    memset(trace, 0, sizeof trace);
    uv_walk(&own, on_walk, NULL);
    say("  walk %s alive %d", trace, uv_loop_alive(&own));
  }
  for (int i = 0; i < OBJECTS; i++) {
    timer = objects[i].kind == TIMER ? &objects[i].any.timer : NULL;
    if (timer != NULL && !objects[i].closed)
      say("  timer %d due %d repeat %d", i, uv_timer_get_due_in(timer) > 0, (int) uv_timer_get_repeat(timer));
    memset(objects[i].plan, 0, sizeof objects[i].plan);
    if (!uv_is_closing(&objects[i].any.handle)) uv_close(&objects[i].any.handle, on_closed);
  }
  uv_close((uv_handle_t*) &keeper, NULL);
  run(UV_RUN_DEFAULT);
  say("  close: %s", name(uv_loop_close(&own)));
  return 0;
}
