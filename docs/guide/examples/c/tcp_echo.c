/* An echo server on the loop, with a client on the same loop that says one line.
 *
 *   cc tcp_echo.c -luv && ./a.out
 *
 * No call waits: the callbacks of the server and of the client take turns in the poll phase. */
#include "check.h"
#include <string.h>

typedef struct {
  uv_write_t request;
  uv_buf_t buffer;
} echo_t;

static uv_loop_t* loop;
static uv_tcp_t server;

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
  (void) handle;
  *buffer = uv_buf_init(malloc(suggested), suggested);
}

static void on_server_closed(uv_handle_t* handle) {
  (void) handle;
  printf("server: closed\n");
}

static void on_client_closed(uv_handle_t* handle) {
  (void) handle;
  printf("client: closed\n");
}

static void on_connection_closed(uv_handle_t* handle) {
  printf("server: connection closed\n");
  free(handle);
}

/* The server's side. */

static void on_echoed(uv_write_t* request, int status) {
  check(status, "write");
  echo_t* echo = (echo_t*) request;
  free(echo->buffer.base);
  free(echo);
}

static void on_server_read(uv_stream_t* connection, ssize_t count, const uv_buf_t* buffer) {
  if (count > 0) {
    printf("server: read \"%.*s\"\n", (int) count, buffer->base);
    /* The memory is the write's now; its callback frees it. */
    echo_t* echo = malloc(sizeof *echo);
    echo->buffer = uv_buf_init(buffer->base, count);
    check(uv_write(&echo->request, connection, &echo->buffer, 1, on_echoed), "uv_write");
    return;
  }
  free(buffer->base);
  if (count == UV_EOF) {
    printf("server: the client is at its end\n");
    uv_close((uv_handle_t*) connection, on_connection_closed);
    uv_close((uv_handle_t*) &server, on_server_closed);
  }
}

static void on_connection(uv_stream_t* listener, int status) {
  check(status, "connection");
  printf("server: a client has come\n");
  uv_tcp_t* connection = malloc(sizeof *connection);
  check(uv_tcp_init(loop, connection), "uv_tcp_init");
  check(uv_accept(listener, (uv_stream_t*) connection), "uv_accept");
  check(uv_read_start((uv_stream_t*) connection, on_alloc, on_server_read), "uv_read_start");
}

/* The client's side. */

static void on_client_read(uv_stream_t* client, ssize_t count, const uv_buf_t* buffer) {
  if (count > 0) {
    printf("client: got back \"%.*s\"\n", (int) count, buffer->base);
    uv_close((uv_handle_t*) client, on_client_closed);
  }
  free(buffer->base);
}

static void on_said(uv_write_t* request, int status) {
  check(status, "write");
  check(uv_read_start(request->handle, on_alloc, on_client_read), "uv_read_start");
}

static void on_connected(uv_connect_t* request, int status) {
  static uv_write_t said;
  check(status, "connect");
  uv_buf_t line = uv_buf_init("hello", 5);
  check(uv_write(&said, request->handle, &line, 1, on_said), "uv_write");
}

int main(void) {
  uv_tcp_t client;
  uv_connect_t request;
  struct sockaddr_in address;
  int size = sizeof address;
  loop = uv_default_loop();
  check(uv_tcp_init(loop, &server), "uv_tcp_init");
  check(uv_ip4_addr("127.0.0.1", 0, &address), "uv_ip4_addr");
  check(uv_tcp_bind(&server, (struct sockaddr*) &address, 0), "uv_tcp_bind");
  check(uv_listen((uv_stream_t*) &server, 128, on_connection), "uv_listen");
  check(uv_tcp_getsockname(&server, (struct sockaddr*) &address, &size), "uv_tcp_getsockname");
  check(uv_tcp_init(loop, &client), "uv_tcp_init");
  check(uv_tcp_connect(&request, &client, (struct sockaddr*) &address, on_connected), "connect");
  uv_run(loop, UV_RUN_DEFAULT);
  check(uv_loop_close(loop), "uv_loop_close");
  return 0;
}
