/*
 * A program for libuv, compiled and linked with somebody else's libuv and then
 * run on ours. It uses what every program uses: timers, an async handle from
 * another thread, idle, prepare and check, a TCP echo over loopback, a pipe,
 * the thread pool, files, and closing everything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static int timers, asyncs, prepares, checks, idles, closes, echoed, worked;
static uv_timer_t timer;
static uv_async_t async;
static uv_prepare_t prepare;
static uv_check_t check;
static uv_idle_t idle;
static uv_tcp_t server, client, peer;
static uv_connect_t connect_req;
static uv_write_t write_req, echo_req;
static uv_work_t work;
static char room[64], echo_room[64];
static const char text[] = "what nobody saw before";

static void on_close(uv_handle_t* handle) {
  CHECK(uv_is_closing(handle));
  closes++;
}

static void close_any(uv_handle_t* handle, void* arg) {
  (void) arg;
  if (!uv_is_closing(handle))
    uv_close(handle, on_close);
}

static void on_timer(uv_timer_t* handle) {
  timers++;
  if (timers >= 3 && asyncs > 0 && echoed && worked == 2)
    uv_walk(handle->loop, close_any, NULL);
}

static void on_async(uv_async_t* handle) {
  (void) handle;
  asyncs++;
}

static void on_prepare(uv_prepare_t* handle) {
  (void) handle;
  prepares++;
}

static void on_check(uv_check_t* handle) {
  (void) handle;
  checks++;
}

static void on_idle(uv_idle_t* handle) {
  if (++idles == 5)
    uv_idle_stop(handle);
}

static void on_thread(void* arg) {
  (void) arg;
  CHECK(uv_async_send(&async) == 0);
}

static void on_work(uv_work_t* req) {
  (void) req;
  worked = 1;
}

static void on_worked(uv_work_t* req, int status) {
  (void) req;
  CHECK(status == 0);
  worked = 2;
}

static void on_alloc(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) size;
  *buf = handle == (uv_handle_t*) &client
             ? uv_buf_init(echo_room, sizeof(echo_room))
             : uv_buf_init(room, sizeof(room));
}

static void on_written(uv_write_t* req, int status) {
  (void) req;
  CHECK(status == 0);
}

static void on_echo(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  (void) stream;
  CHECK(nread == (ssize_t) sizeof(text));
  CHECK(memcmp(buf->base, text, sizeof(text)) == 0);
  echoed = 1;
}

static void on_read(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  uv_buf_t reply;
  CHECK(nread == (ssize_t) sizeof(text));
  reply = uv_buf_init(buf->base, (unsigned int) nread);
  CHECK(uv_write(&echo_req, stream, &reply, 1, on_written) == 0);
}

static void on_connection(uv_stream_t* stream, int status) {
  CHECK(status == 0);
  CHECK(uv_tcp_init(stream->loop, &peer) == 0);
  CHECK(uv_accept(stream, (uv_stream_t*) &peer) == 0);
  CHECK(uv_read_start((uv_stream_t*) &peer, on_alloc, on_read) == 0);
}

static void on_connect(uv_connect_t* req, int status) {
  uv_buf_t buf = uv_buf_init((char*) text, sizeof(text));
  CHECK(status == 0);
  CHECK(uv_write(&write_req, req->handle, &buf, 1, on_written) == 0);
  CHECK(uv_read_start(req->handle, on_alloc, on_echo) == 0);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  struct sockaddr_in address;
  struct sockaddr_in bound;
  int length = sizeof(bound);
  uv_thread_t thread;
  uv_fs_t stat_req;

  CHECK(loop != NULL);
  CHECK(uv_timer_init(loop, &timer) == 0);
  CHECK(uv_timer_start(&timer, on_timer, 1, 1) == 0);
  CHECK(uv_async_init(loop, &async, on_async) == 0);
  CHECK(uv_prepare_init(loop, &prepare) == 0);
  CHECK(uv_prepare_start(&prepare, on_prepare) == 0);
  CHECK(uv_check_init(loop, &check) == 0);
  CHECK(uv_check_start(&check, on_check) == 0);
  CHECK(uv_idle_init(loop, &idle) == 0);
  CHECK(uv_idle_start(&idle, on_idle) == 0);
  CHECK(uv_thread_create(&thread, on_thread, NULL) == 0);
  CHECK(uv_queue_work(loop, &work, on_work, on_worked) == 0);

  CHECK(uv_ip4_addr("127.0.0.1", 0, &address) == 0);
  CHECK(uv_tcp_init(loop, &server) == 0);
  CHECK(uv_tcp_bind(&server, (struct sockaddr*) &address, 0) == 0);
  CHECK(uv_listen((uv_stream_t*) &server, 8, on_connection) == 0);
  CHECK(uv_tcp_getsockname(&server, (struct sockaddr*) &bound, &length) == 0);
  CHECK(uv_tcp_init(loop, &client) == 0);
  CHECK(uv_tcp_connect(&connect_req, &client, (struct sockaddr*) &bound,
                       on_connect) == 0);

  CHECK(uv_fs_stat(NULL, &stat_req, "/", NULL) == 0);
  CHECK((stat_req.statbuf.st_mode & S_IFMT) == S_IFDIR);
  uv_fs_req_cleanup(&stat_req);

  CHECK(uv_run(loop, UV_RUN_DEFAULT) == 0);
  CHECK(uv_thread_join(&thread) == 0);
  CHECK(timers >= 3 && asyncs == 1 && idles == 5 && closes == 8);
  CHECK(prepares == checks);
  CHECK(uv_loop_close(loop) == 0);
  printf("%s\n", uv_version_string());
  return 0;
}
