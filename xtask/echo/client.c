/* The other side of the echo benchmark, the same for all servers.
 *
 *   client <cpu> <connections> <messages> <port> [<active>]
 *
 * In each round it sends a message on every active connection, which is all of them unless it
 * is told otherwise, and takes all the answers, each of which it compares with what it sent. */
#include "common.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int dial(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  MUST(connect(fd, (struct sockaddr*) &address, sizeof address) == 0);
  MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
  return fd;
}

/* A loopback connection takes and gives a message of this size whole. */
static void take(int fd, const char* message) {
  char answer[ROOM];
  MUST(recv(fd, answer, sizeof answer, 0) == MESSAGE);
  MUST(memcmp(answer, message, MESSAGE) == 0);
}

int main(int argc, char** argv) {
  static struct epoll_event events[1024];
  char message[MESSAGE];
  MUST(argc == 5 || argc == 6);
  pin(atoi(argv[1]));
  raise_limit();
  int connections = atoi(argv[2]), epoll = epoll_create1(EPOLL_CLOEXEC);
  int active = argc == 6 ? atoi(argv[5]) : connections;
  long rounds = atol(argv[3]) / active;
  int* fds = calloc(connections, sizeof *fds);
  for (int i = 0; i < connections; i++) {
    struct epoll_event event = {.events = EPOLLIN};
    event.data.fd = fds[i] = dial(atoi(argv[4]));
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) == 0);
  }
  for (long round = 0; round < rounds; round++) {
    memset(message, (int) round, sizeof message);
    for (int i = 0; i < active; i++)
      MUST(send(fds[i], message, MESSAGE, 0) == MESSAGE);
    for (int left = active; left > 0;) {
      int count = epoll_wait(epoll, events, 1024, -1);
      MUST(count > 0);
      for (int i = 0; i < count; i++)
        take(events[i].data.fd, message);
      left -= count;
    }
  }
  return 0;
}
