/* Level-triggered and edge-triggered: what is reported again when it was not used up.
 *
 *   cc edge_or_level.c && ./a.out
 *
 * Five bytes come, and two are read. A level is reported for as long as three are left, an edge only
 * when more come. */
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static void run(const char* name, unsigned flags) {
  int ends[2], epoll = epoll_create1(0);
  char two[2];
  struct epoll_event event = {.events = EPOLLIN | flags};
  if (pipe(ends) != 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) != 0 ||
      write(ends[1], "hello", 5) != 5) {
    perror(name);
    return;
  }
  printf("%s: reported %d", name, epoll_wait(epoll, &event, 1, 0));
  if (read(ends[0], two, 2) == 2)
    printf(", after reading two of five %d", epoll_wait(epoll, &event, 1, 0));
  if (write(ends[1], "!", 1) == 1)
    printf(", after one more has come %d\n", epoll_wait(epoll, &event, 1, 0));
  close(ends[0]);
  close(ends[1]);
  close(epoll);
}

int main(void) {
  run("level", 0);
  run("edge", EPOLLET);
  return 0;
}
