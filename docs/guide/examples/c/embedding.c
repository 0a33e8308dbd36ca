/* The loop inside another one, here a plain one around poll(2).
 *
 *   cc embedding.c -luv && ./a.out
 *
 * The program waits for its own pipe and for the loop's descriptor at once, for no longer than the loop
 * would, and lets the loop take a turn that does not wait. */
#include "check.h"
#include <poll.h>
#include <unistd.h>

static int ends[2];

static void work(uv_work_t* request) {
  *(int*) request->data = 6 * 7;
}

static void after_work(uv_work_t* request, int status) {
  check(status, "work");
  printf("the loop's work: %d\n", *(int*) request->data);
  /* Now the program has something of its own to do. */
  if (write(ends[1], "hello", 5) != 5)
    perror("write");
  close(ends[1]);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_work_t request;
  int answer = 0, is_open = 1;
  request.data = &answer;
  check(pipe(ends), "pipe");
  check(uv_queue_work(loop, &request, work, after_work), "uv_queue_work");
  for (;;) {
    /* A turn first: it tells the kernel what the loop waits for. */
    int more = uv_run(loop, UV_RUN_NOWAIT);
    if (!more && !is_open)
      break;
    struct pollfd fds[] = {{.fd = uv_backend_fd(loop), .events = POLLIN},
                           {.fd = is_open ? ends[0] : -1, .events = POLLIN}};
    poll(fds, 2, more ? uv_backend_timeout(loop) : -1);
    if (fds[1].revents != 0) {
      char bytes[16];
      ssize_t count = read(ends[0], bytes, sizeof bytes);
      is_open = count > 0;
      if (is_open)
        printf("the program's pipe: %.*s\n", (int) count, bytes);
    }
  }
  check(uv_loop_close(loop), "uv_loop_close");
  return 0;
}
