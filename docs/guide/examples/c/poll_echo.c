/* A server around poll(2), without a library: gives two clients back what they send.
 *
 *   cc poll_echo.c && ./a.out
 *
 * What is wanted (`events`) and what has happened (`revents`) are two fields, so the list stays
 * from turn to turn, and no number is too high for it. The kernel still goes through all of it. */
#include "clients.h"
#include <poll.h>

int main(void) {
  int server = listen_locally();
  start_clients(server);
  struct pollfd list[1 + CLIENTS] = {{.fd = server, .events = POLLIN}};
  int count = 1;
  while (clients_left()) {
    if (poll(list, count, -1) < 0)
      fail("poll");
    for (int at = 0; at < count; at++) {
      if (list[at].revents == 0)
        continue;
      if (list[at].fd == server)
        list[count++] = (struct pollfd){.fd = greet(server), .events = POLLIN};
      else if (!echo(list[at].fd))
        list[at].fd = -1; /* It is passed over from now on. */
    }
  }
  return 0;
}
