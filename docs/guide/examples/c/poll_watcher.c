/* A watcher of a descriptor: it tells of readiness, and the program reads and writes by itself.
 *
 *   cc poll_watcher.c -luv && ./a.out
 *
 * This is how a library with sockets of its own (curl, c-ares, libpq) joins the loop. */
#include "check.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2];

static void on_close(uv_handle_t* handle) {
  (void) handle;
  printf("closed: the descriptor is the program's again\n");
  close(ends[0]);
}

static void on_ready(uv_poll_t* watcher, int status, int events) {
  check(status, "poll");
  if (events & UV_WRITABLE) {
    printf("writable: there is room\n");
    /* Level-triggered: it would be told in each turn. Starting again replaces what is watched. */
    check(uv_poll_start(watcher, UV_READABLE | UV_DISCONNECT, on_ready), "uv_poll_start");
    if (write(ends[1], "hello", 5) != 5)
      perror("write");
    return;
  }
  char bytes[16];
  ssize_t count = events & UV_READABLE ? read(ends[0], bytes, sizeof bytes) : 0;
  if (count > 0) {
    printf("readable: \"%.*s\"\n", (int) count, bytes);
    close(ends[1]);
    return;
  }
  printf("the other end has gone\n");
  check(uv_poll_stop(watcher), "uv_poll_stop");
  uv_close((uv_handle_t*) watcher, on_close);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_poll_t watcher, second;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    return 1;
  check(uv_poll_init(loop, &watcher, ends[0]), "uv_poll_init");
  check(uv_poll_start(&watcher, UV_READABLE | UV_WRITABLE, on_ready), "uv_poll_start");
  /* A descriptor has one watcher in a loop. */
  printf("a second watcher: %s\n", uv_err_name(uv_poll_init(loop, &second, ends[0])));
  uv_run(loop, UV_RUN_DEFAULT);
  check(uv_loop_close(loop), "uv_loop_close");
  return 0;
}
