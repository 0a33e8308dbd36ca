/* A server around epoll, without a library: gives two clients back what they send.
 *
 *   cc epoll_echo.c && ./a.out
 *
 * The kernel keeps the list (`epoll_ctl`) and hands out only what is ready (`epoll_wait`), so a turn
 * costs what has happened and not what is open. libuv and Blacklight wait in this way on Linux. */
#include "clients.h"
#include <sys/epoll.h>

static void watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    fail("epoll_ctl");
}

int main(void) {
  int server = listen_locally();
  start_clients(server);
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, server);
  while (clients_left()) {
    struct epoll_event ready[8];
    int count = epoll_wait(epoll, ready, 8, -1);
    if (count < 0)
      fail("epoll_wait");
    for (int at = 0; at < count; at++) {
      int fd = ready[at].data.fd;
      if (fd == server)
        watch(epoll, greet(server));
      else
        echo(fd); /* A descriptor that is closed leaves the kernel's list by itself. */
    }
  }
  return 0;
}
