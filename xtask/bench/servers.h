/* Runs a server of the echo benchmark with its client, each on a core of its own. */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include "../echo/common.h"
#include <libgen.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_CPU "0"
#define CLIENT_CPU "1"

/* So many connections, of which so many are active, and so many messages over all of those. */
typedef struct {
  const char *connections, *active, *messages;
} load_t;

static pid_t start(const char* self, const char* name, int output, const char* const* arguments) {
  char path[4096], dir[4096];
  const char* argv[8] = {path};
  snprintf(dir, sizeof dir, "%s", self);
  snprintf(path, sizeof path, "%s/%s", dirname(dir), name);
  for (int i = 0; arguments[i] != NULL; i++)
    argv[i + 1] = arguments[i];
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    MUST(dup2(output, STDOUT_FILENO) >= 0);
    execv(path, (char**) argv);
    MUST(!"the program can be run");
  }
  return child;
}

static void await(pid_t child) {
  int status;
  MUST(waitpid(child, &status, 0) == child);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The processor time that a server, which lies beside `self`, spends on a message. It gets one more
 * argument if `option` is not NULL. */
static double ns_per_message(const char* self, const char* server, const char* option, load_t load) {
  int ends[2];
  double ns;
  char port[16];
  MUST(pipe(ends) == 0);
  pid_t serving = start(self, server, ends[1],
                        (const char*[]){SERVER_CPU, load.connections, load.messages, option, NULL});
  close(ends[1]);
  FILE* said = fdopen(ends[0], "r");
  MUST(said != NULL && fscanf(said, "%15s", port) == 1);
  await(start(self, "client", STDERR_FILENO,
              (const char*[]){CLIENT_CPU, load.connections, load.messages, port, load.active, NULL}));
  MUST(fscanf(said, "%lf", &ns) == 1);
  await(serving);
  fclose(said);
  return ns;
}

/* Says what a message costs the server under a load. The program's arguments are the name of the
 * server, and perhaps one more that is handed on to the server on libuv. */
static inline void measure(char** argv, const char* label, load_t load) {
  const char* option = strcmp(argv[1], "server-uv") == 0 ? argv[2] : NULL;
  printf("%s: %f ns/message\n", label, ns_per_message(argv[0], argv[1], option, load));
  fflush(stdout);
}

#endif
