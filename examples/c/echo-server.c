/* An echo server: gives everybody back what they send, until they hang up.
 *
 *   echo-server [port]
 *
 * Without a port it takes one that is free, and prints it. SIGINT or SIGTERM ends it. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

typedef struct {
  uv_write_t request;
  uv_buf_t buffer;
} echo_t;

static uv_loop_t loop;

static void check(int result, const char* what) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", what, uv_strerror(result));
    exit(1);
  }
}

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  (void) handle;
  *buffer = uv_buf_init(malloc(suggested), suggested);
}

static void on_close(uv_handle_t* handle) {
  free(handle);
}

static void on_written(uv_write_t* request, int status) {
  echo_t* echo = (echo_t*) request;
  uv_handle_t* client = (uv_handle_t*) request->handle;
  if (status < 0 && !uv_is_closing(client))
    uv_close(client, on_close);
  free(echo->buffer.base);
  free(echo);
}

static void on_read(uv_stream_t* client, ssize_t count, const uv_buf_t* buffer) {
  if (count > 0) {
    /* The memory is the write's now; its callback frees it. */
    echo_t* echo = malloc(sizeof *echo);
    echo->buffer = uv_buf_init(buffer->base, count);
    check(uv_write(&echo->request, client, &echo->buffer, 1, on_written), "uv_write");
    return;
  }
  free(buffer->base);
  if (count < 0)
    uv_close((uv_handle_t*) client, on_close);
}

static void on_connection(uv_stream_t* server, int status) {
  check(status, "connection");
  uv_tcp_t* client = malloc(sizeof *client);
  check(uv_tcp_init(&loop, client), "uv_tcp_init");
  check(uv_accept(server, (uv_stream_t*) client), "uv_accept");
  check(uv_read_start((uv_stream_t*) client, on_alloc, on_read), "uv_read_start");
}

static void on_signal(uv_signal_t* handle, int signum) {
  (void) signum;
  uv_stop(handle->loop);
}

/* Clients are on the heap; the server and the signals are not. */
static void close_each(uv_handle_t* handle, void* own_data) {
  if (!uv_is_closing(handle))
    uv_close(handle, handle->data == own_data ? NULL : on_close);
}

int main(int argc, char** argv) {
  uv_tcp_t server;
  uv_signal_t signals[2];
  struct sockaddr_in address;
  int size = sizeof address, own;
  check(uv_loop_init(&loop), "uv_loop_init");
  check(uv_ip4_addr("127.0.0.1", argc > 1 ? atoi(argv[1]) : 0, &address), "uv_ip4_addr");
  check(uv_tcp_init(&loop, &server), "uv_tcp_init");
  check(uv_tcp_bind(&server, (struct sockaddr*) &address, 0), "uv_tcp_bind");
  check(uv_listen((uv_stream_t*) &server, 128, on_connection), "uv_listen");
  check(uv_tcp_getsockname(&server, (struct sockaddr*) &address, &size), "getsockname");
  server.data = &own;
  for (int i = 0; i < 2; i++) {
    check(uv_signal_init(&loop, &signals[i]), "uv_signal_init");
    check(uv_signal_start(&signals[i], on_signal, i == 0 ? SIGINT : SIGTERM), "uv_signal_start");
    signals[i].data = &own;
  }
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_walk(&loop, close_each, &own);
  uv_run(&loop, UV_RUN_DEFAULT);
  check(uv_loop_close(&loop), "uv_loop_close");
  return 0;
}
