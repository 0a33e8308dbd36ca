/* Callbacks that run the loop again. What an outer run has fetched, a nested one may hand out or leave to
 * the outer, and libraries differ in that: compared is only that each callback comes exactly once. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

enum { MOST = 10, DEEP = 3 };

/* One thing that is to happen once, and what its callback does then. */
struct item {
  union uv_any_handle any; /* First, so that a handle's address is its item's. */
  union uv_any_req req;
  int kind, nested, closes, happened, closed;
  int fds[2]; /* that nobody else closes */
};
enum { ON_TIMER, ON_ASYNC, ON_IDLE, ON_READ, ON_POLL, ON_WORK, ON_CLOSE, KINDS_OF_ITEMS };

static struct {
  struct item items[MOST];
  uv_idle_t keeper; /* keeps a run for one event from waiting for ever */
  int count, left, depth, idles, scene;
} scene;

static void on_keeper(uv_idle_t* idle) { (void) idle; }
static void on_end(uv_handle_t* handle) { (void) handle; awaited--; }

/* Something has gone for good: the last of them tells what has happened to all. */
static void one_less(void) {
  if (--scene.left > 0) return;
  for (int i = 0; i < scene.count; i++) {
    struct item* item = &scene.items[i];
    say("scene %d item %d kind %d: happened %d closed %d", scene.scene, i, item->kind, item->happened, item->closed);
  }
  uv_close((uv_handle_t*) &scene.keeper, on_end);
}

static void again(struct item* item) {
  /* While the original is at the idle handles, a nested run does not see those whose turn is yet to come,
   * and would wait for ever. */
  uv_run_mode mode = item->nested == 3 && scene.idles == 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT;
  if (item->nested == 0 || scene.depth == DEEP) return;
  scene.depth++;
  if (item->nested == 4) uv_stop(&loop);
  uv_run(&loop, mode);
  scene.depth--;
}

static void on_closed(uv_handle_t* handle) {
  struct item* item = (struct item*) handle;
  item->closed++;
  for (int i = 0; i < 2; i++) if (item->fds[i] >= 0) close(item->fds[i]);
  if (item->kind == ON_CLOSE) { item->happened++; again(item); }
  one_less();
}

/* The callback of an item: what it must not do twice, it undoes first. */
static void happens(struct item* item) {
  item->happened++;
  if (item->closes) uv_close(&item->any.handle, on_closed);
  again(item);
  if (!item->closes) uv_close(&item->any.handle, on_closed);
}
static void on_timer(uv_timer_t* timer) { happens((struct item*) timer); }
static void on_async(uv_async_t* async) { happens((struct item*) async); }
static void on_idle(uv_idle_t* idle) {
  uv_idle_stop(idle);
  scene.idles++;
  happens((struct item*) idle);
  scene.idles--;
}
static void on_poll(uv_poll_t* poll, int status, int events) {
  (void) status; (void) events;
  uv_poll_stop(poll);
  happens((struct item*) poll);
}
static void on_read(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  (void) buf;
  if (nread == 0) return;
  uv_read_stop(stream);
  happens((struct item*) stream);
}
static void work(uv_work_t* req) { (void) req; }
static void on_work(uv_work_t* req, int status) {
  (void) status;
  happens(req->data);
}

static void begin(struct item* item) {
  int pair[2];
  item->fds[0] = item->fds[1] = -1;
  switch (item->kind) {
    case ON_TIMER:
      uv_timer_init(&loop, &item->any.timer);
      uv_timer_start(&item->any.timer, on_timer, below(2), 0);
      break;
    case ON_ASYNC:
      uv_async_init(&loop, &item->any.async, on_async);
      uv_async_send(&item->any.async);
      break;
    case ON_IDLE:
      uv_idle_init(&loop, &item->any.idle);
      uv_idle_start(&item->any.idle, on_idle);
      break;
    case ON_READ: case ON_POLL:
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || write(pair[1], "x", 1) != 1) abort();
      item->fds[1] = pair[1];
      if (item->kind == ON_POLL) {
        item->fds[0] = pair[0];
        uv_poll_init(&loop, &item->any.poll, pair[0]);
        uv_poll_start(&item->any.poll, UV_READABLE, on_poll);
        break;
      }
      uv_pipe_init(&loop, &item->any.pipe, 0);
      uv_pipe_open(&item->any.pipe, pair[0]);
      uv_read_start(&item->any.stream, on_alloc, on_read);
      break;
    case ON_WORK: /* The handle is there only to be closed. */
      uv_timer_init(&loop, &item->any.timer);
      item->req.work.data = item;
      uv_queue_work(&loop, &item->req.work, work, on_work);
      break;
    case ON_CLOSE:
      uv_check_init(&loop, &item->any.check);
      uv_close(&item->any.handle, on_closed);
      break;
  }
}

int nested_op(void) {
  static int scenes;
  memset(&scene, 0, sizeof scene);
  scene.scene = ++scenes;
  scene.count = scene.left = 2 + (int) below(MOST - 1);
  awaited++;
  uv_idle_init(&loop, &scene.keeper);
  uv_idle_start(&scene.keeper, on_keeper);
  for (int i = 0; i < scene.count; i++) {
    struct item* item = &scene.items[i];
    item->kind = below(KINDS_OF_ITEMS);
    item->nested = below(5);
    item->closes = below(2);
    begin(item);
  }
  say("scene %d of %d", scene.scene, scene.count);
  return 1;
}
