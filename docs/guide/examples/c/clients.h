/* What the three servers around select, poll and epoll share: the socket, two clients in a
 * child process, and the echo itself. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS 2

static int ended;

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int listen_locally(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(server, (struct sockaddr*) &address, sizeof address) != 0 || listen(server, 8) != 0)
    fail("listen");
  return server;
}

/* Both connect; then the second speaks first, and each waits for its line to come back. */
static void start_clients(int server) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  getsockname(server, (struct sockaddr*) &address, &size);
  fflush(stdout);
  if (fork() != 0)
    return;
  int clients[CLIENTS];
  for (int at = 0; at < CLIENTS; at++) {
    clients[at] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(clients[at], (struct sockaddr*) &address, size) != 0)
      fail("connect");
  }
  for (int at = CLIENTS - 1; at >= 0; at--) {
    char line[32], answer[32];
    int length = snprintf(line, sizeof line, "hello from client %d", at + 1);
    if (write(clients[at], line, length) != length ||
        recv(clients[at], answer, length, MSG_WAITALL) != length || memcmp(line, answer, length))
      fail("client");
    /* The server closes its end when it has seen that this one is at its end. */
    shutdown(clients[at], SHUT_WR);
    if (read(clients[at], answer, sizeof answer) != 0)
      fail("client");
  }
  _exit(0);
}

static int clients_left(void) {
  if (ended < CLIENTS)
    return 1;
  int status;
  wait(&status);
  printf("both clients got back what they sent: %s\n", status == 0 ? "yes" : "no");
  return 0;
}

static int greet(int server) {
  int client = accept4(server, NULL, NULL, SOCK_CLOEXEC);
  if (client < 0)
    fail("accept");
  printf("a client has come\n");
  return client;
}

/* Whether the client is still there. */
static int echo(int client) {
  char bytes[1024];
  ssize_t count = read(client, bytes, sizeof bytes);
  if (count > 0 && write(client, bytes, count) == count) {
    printf("echoed \"%.*s\"\n", (int) count, bytes);
    return 1;
  }
  printf("a client has gone\n");
  close(client);
  ended++;
  return 0;
}
