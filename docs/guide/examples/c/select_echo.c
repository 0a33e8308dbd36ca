/* A server around select(2), without a library: gives two clients back what they send.
 *
 *   cc select_echo.c && ./a.out
 *
 * The kernel overwrites the sets that it is given with what is ready, so they are built again in
 * each turn, and all descriptors up to the highest are looked at to find those that are. */
#include "clients.h"
#include <sys/select.h>

int main(void) {
  int server = listen_locally();
  start_clients(server);
  fd_set open_ones;
  FD_ZERO(&open_ones);
  FD_SET(server, &open_ones);
  int highest = server;
  while (clients_left()) {
    fd_set readable = open_ones;
    if (select(highest + 1, &readable, NULL, NULL, NULL) < 0)
      fail("select");
    for (int fd = 0; fd <= highest; fd++) {
      if (!FD_ISSET(fd, &readable))
        continue;
      if (fd == server) {
        int client = greet(server);
        FD_SET(client, &open_ones);
        highest = client > highest ? client : highest;
      } else if (!echo(fd)) {
        FD_CLR(fd, &open_ones);
      }
    }
  }
  return 0;
}
