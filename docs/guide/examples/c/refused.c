/* A connection to a port that nobody listens at.
 *
 *   cc refused.c -luv && ./a.out
 *
 * The call succeeds, however soon the system knows better: no callback is ever called from inside of the
 * call that asks for it, and the error is told of in the poll phase. */
#include "check.h"

static void on_close(uv_handle_t* handle) {
  (void) handle;
  printf("closed\n");
}

static void on_connected(uv_connect_t* request, int status) {
  printf("%s\n", uv_err_name(status));
  uv_close((uv_handle_t*) request->handle, on_close);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_tcp_t server, client;
  uv_connect_t request;
  struct sockaddr_in address;
  int size = sizeof address;
  /* A port that nobody listens at: it is bound, and that is all. */
  check(uv_tcp_init(loop, &server), "uv_tcp_init");
  check(uv_ip4_addr("127.0.0.1", 0, &address), "uv_ip4_addr");
  check(uv_tcp_bind(&server, (struct sockaddr*) &address, 0), "uv_tcp_bind");
  check(uv_tcp_getsockname(&server, (struct sockaddr*) &address, &size), "uv_tcp_getsockname");
  check(uv_tcp_init(loop, &client), "uv_tcp_init");
  check(uv_tcp_connect(&request, &client, (struct sockaddr*) &address, on_connected), "connect");
  printf("the call has succeeded\n");
  uv_run(loop, UV_RUN_DEFAULT);
  uv_close((uv_handle_t*) &server, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  check(uv_loop_close(loop), "uv_loop_close");
  return 0;
}
