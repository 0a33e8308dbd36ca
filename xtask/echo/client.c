/* The other side of the echo benchmark, the same for all servers.
 *
 *   client <cpu> <connections> <messages> <port> [<active>]
 *   client <cpu> gap <messages> <port> <microseconds>
 *
 * In each round it sends a message on every active connection, which is all of them unless it
 * is told otherwise, and takes all the answers, each of which it compares with what it sent.
 *
 * With `gap` there is one connection, and so much time passes between an answer and the next message.
 * The client stays awake all the while, so that only the server's sleep shows in the time from a
 * message to its answer, whose median and 99th percentile it prints in nanoseconds. */
#include "common.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
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

static long now_ns(void) {
  struct timespec time;
  MUST(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static int by_size(const void* a, const void* b) {
  long x = *(const long*) a, y = *(const long*) b;
  return (x > y) - (x < y);
}

static int with_gaps(long messages, int port, long gap_ns) {
  char message[MESSAGE], answer[ROOM];
  long* took = calloc(messages, sizeof *took);
  int fd = dial(port);
  for (long at = 0; at < messages; at++) {
    memset(message, (int) at, sizeof message);
    for (long begun = now_ns(); now_ns() - begun < gap_ns;)
      ;
    long sent = now_ns();
    MUST(send(fd, message, MESSAGE, 0) == MESSAGE);
    ssize_t got;
    while ((got = recv(fd, answer, sizeof answer, MSG_DONTWAIT)) < 0)
      MUST(errno == EAGAIN);
    took[at] = now_ns() - sent;
    MUST(got == MESSAGE && memcmp(answer, message, MESSAGE) == 0);
  }
  qsort(took, messages, sizeof *took, by_size);
  printf("%ld %ld\n", took[messages / 2], took[messages * 99 / 100]);
  return 0;
}

int main(int argc, char** argv) {
  static struct epoll_event events[1024];
  char message[MESSAGE];
  MUST(argc == 5 || argc == 6);
  pin(atoi(argv[1]));
  raise_limit();
  if (strcmp(argv[2], "gap") == 0)
    return with_gaps(atol(argv[3]), atoi(argv[4]), atol(argv[5]) * 1000);
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
