/* A chat between two processes, in which a TCP handle changes hands.
 *
 * The parent listens, starts itself again as its child with an IPC pipe as descriptor 3, and
 * sends the listening handle over it. The child accepts on it, and whoever connects is greeted
 * by a process that never bound the port: here that is the parent, which prints the greeting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

static uv_loop_t loop;
static uv_pipe_t channel;
static uv_tcp_t server, client;
static uv_process_t process;
static uv_connect_t connection;
static uv_write_t request;
static char room[256];

static void check(int result, const char* what) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", what, uv_strerror(result));
    exit(1);
  }
}

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  (void) handle, (void) suggested;
  *buffer = uv_buf_init(room, sizeof room);
}

static void say(uv_stream_t* to, uv_stream_t* passing, char* text, uv_write_cb done) {
  uv_buf_t buffer = uv_buf_init(text, strlen(text));
  check(uv_write2(&request, to, &buffer, 1, passing, done), "uv_write2");
}

/* The child. */
static void on_greeted(uv_write_t* written, int status) {
  (void) written;
  check(status, "greeting");
  uv_close((uv_handle_t*) &client, NULL);
  uv_close((uv_handle_t*) &server, NULL);
  uv_close((uv_handle_t*) &channel, NULL);
}

static void on_connection(uv_stream_t* stream, int status) {
  check(status, "connection");
  check(uv_tcp_init(&loop, &client), "uv_tcp_init");
  check(uv_accept(stream, (uv_stream_t*) &client), "uv_accept");
  say((uv_stream_t*) &client, NULL, "hello from the child", on_greeted);
}

static void on_handle(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  (void) buffer;
  check((int) count, "channel");
  if (uv_pipe_pending_count(&channel) == 0)
    return;
  check(uv_tcp_init(&loop, &server), "uv_tcp_init");
  check(uv_accept(stream, (uv_stream_t*) &server), "uv_accept");
  check(uv_listen((uv_stream_t*) &server, 16, on_connection), "uv_listen");
  uv_read_stop(stream);
}

/* The parent. */
static void on_child_exit(uv_process_t* handle, int64_t status, int signum) {
  if (status != 0 || signum != 0)
    exit(1);
  uv_close((uv_handle_t*) handle, NULL);
}

static void on_greeting(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  if (count > 0)
    printf("%.*s\n", (int) count, buffer->base);
  if (count < 0)
    uv_close((uv_handle_t*) stream, NULL);
}

static void on_connect(uv_connect_t* connected, int status) {
  check(status, "connect");
  check(uv_read_start(connected->handle, on_alloc, on_greeting), "uv_read_start");
}

static void on_passed(uv_write_t* written, int status) {
  struct sockaddr_storage address;
  int size = sizeof address;
  (void) written;
  check(status, "passing");
  check(uv_tcp_getsockname(&server, (struct sockaddr*) &address, &size), "getsockname");
  uv_close((uv_handle_t*) &server, NULL);
  uv_close((uv_handle_t*) &channel, NULL);
  check(uv_tcp_init(&loop, &client), "uv_tcp_init");
  check(uv_tcp_connect(&connection, &client, (struct sockaddr*) &address, on_connect), "connect");
}

static void be_parent(void) {
  char path[4096];
  size_t size = sizeof path;
  struct sockaddr_in address;
  char* arguments[] = {path, "child", NULL};
  uv_stdio_container_t stdio[4] = {{0}};
  uv_process_options_t options = {0};
  check(uv_exepath(path, &size), "uv_exepath");
  check(uv_pipe_init(&loop, &channel, 1), "uv_pipe_init");
  for (int i = 0; i < 3; i++) {
    stdio[i].flags = UV_INHERIT_FD;
    stdio[i].data.fd = i;
  }
  stdio[3].flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE;
  stdio[3].data.stream = (uv_stream_t*) &channel;
  options.file = path;
  options.args = arguments;
  options.stdio = stdio;
  options.stdio_count = 4;
  options.exit_cb = on_child_exit;
  check(uv_spawn(&loop, &process, &options), "uv_spawn");
  check(uv_ip4_addr("127.0.0.1", 0, &address), "uv_ip4_addr");
  check(uv_tcp_init(&loop, &server), "uv_tcp_init");
  check(uv_tcp_bind(&server, (struct sockaddr*) &address, 0), "uv_tcp_bind");
  check(uv_listen((uv_stream_t*) &server, 16, on_connection), "uv_listen");
  say((uv_stream_t*) &channel, (uv_stream_t*) &server, "take this", on_passed);
}

int main(int argc, char** argv) {
  (void) argv;
  check(uv_loop_init(&loop), "uv_loop_init");
  if (argc > 1) {
    check(uv_pipe_init(&loop, &channel, 1), "uv_pipe_init");
    check(uv_pipe_open(&channel, 3), "uv_pipe_open");
    check(uv_read_start((uv_stream_t*) &channel, on_alloc, on_handle), "uv_read_start");
  } else {
    be_parent();
  }
  uv_run(&loop, UV_RUN_DEFAULT);
  check(uv_loop_close(&loop), "uv_loop_close");
  return 0;
}
