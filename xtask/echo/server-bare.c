/* An echo server on nothing but epoll: the floor that no library can be below.
 *
 *   server-bare <cpu> <connections> <messages>
 *
 * Prints its port, and when it has echoed all messages, what one of them cost. */
#include "common.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_somewhere(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  MUST(bind(fd, (struct sockaddr*) &address, size) == 0);
  MUST(listen(fd, 1024) == 0);
  MUST(getsockname(fd, (struct sockaddr*) &address, &size) == 0);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

static void watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

int main(int argc, char** argv) {
  static struct epoll_event events[1024];
  static char buffer[ROOM];
  MUST(argc >= 4);
  pin(atoi(argv[1]));
  raise_limit();
  int connections = atoi(argv[2]);
  double messages = atof(argv[3]), bytes = 0, start = 0, turns = 0;
  int epoll = epoll_create1(EPOLL_CLOEXEC), accepted = 0;
  int server = listen_somewhere();
  watch(epoll, server);
  for (;;) {
    int count = epoll_wait(epoll, events, 1024, -1);
    MUST(count >= 0);
    turns += 1;
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd;
      if (fd == server) {
        int one = 1, client = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        MUST(client >= 0);
        MUST(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
        watch(epoll, client);
        if (++accepted == connections) {
          start = cpu_ns();
          turns = 0;
        }
        continue;
      }
      ssize_t got = read(fd, buffer, sizeof buffer);
      if (got == 0)
        return 0;
      MUST(got > 0);
      MUST(send(fd, buffer, got, MSG_NOSIGNAL) == got);
      bytes += got;
      if (bytes == messages * MESSAGE)
        report(cpu_ns() - start, turns, messages);
    }
  }
}
