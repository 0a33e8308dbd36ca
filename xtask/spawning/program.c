/* Children by the thousand: what their exits cost the loop, and how long a spawn holds it up.
 *
 *   program exits N   processor time of the loop for each of N exits at once, in microseconds
 *   program apart N   the same if they end one after the other
 *   program spawn M   median time in uv_spawn with M MiB of memory in use, in microseconds
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define SPAWNS 101

static void check(int status, const char* what) {
  if (status < 0) {
    fprintf(stderr, "%s: %s\n", what, uv_strerror(status));
    exit(1);
  }
}

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int ended;

static void on_exit_cb(uv_process_t* child, int64_t status, int signal) {
  ended++;
  if (status != 0 || (signal != 0 && signal != SIGTERM)) {
    fprintf(stderr, "a child failed\n");
    exit(1);
  }
  uv_close((uv_handle_t*) child, NULL);
}

/* The child holds two pipes: it ends when the first ends, and the second ends with it. */
static void spawn(uv_process_t* child, int until, int alive) {
  uv_stdio_container_t stdio[3] = {{.flags = UV_INHERIT_FD, .data.fd = until},
                                   {.flags = UV_INHERIT_FD, .data.fd = alive},
                                   {.flags = UV_INHERIT_FD, .data.fd = 2}};
  char* args[] = {"/proc/self/exe", "child", NULL};
  uv_process_options_t options = {.exit_cb = on_exit_cb,
                                  .file = args[0],
                                  .args = args,
                                  .stdio = stdio,
                                  .stdio_count = 3};
  check(uv_spawn(uv_default_loop(), child, &options), "uv_spawn");
}

static void open_pipe(int ends[2]) {
  check(uv_pipe(ends, 0, 0), "uv_pipe");
}

static void await_end(int fd) {
  char byte;
  while (read(fd, &byte, 1) != 0)
    continue;
}

/* Starts children, and lets the loop get to know of them before their end. */
static uv_process_t* start(int count, int until[2], int alive[2]) {
  uv_process_t* children = calloc(count, sizeof(*children));
  int at;
  open_pipe(until);
  open_pipe(alive);
  for (at = 0; at < count; at++)
    spawn(&children[at], until[0], alive[1]);
  uv_run(uv_default_loop(), UV_RUN_NOWAIT);
  return children;
}

static void apart(int count) {
  int until[2], alive[2];
  uv_process_t* children = start(count, until, alive);
  double begun = now(CLOCK_THREAD_CPUTIME_ID);
  int at;
  for (at = 0; at < count; at++) {
    check(uv_process_kill(&children[at], SIGTERM), "uv_process_kill");
    while (ended <= at)
      uv_run(uv_default_loop(), UV_RUN_ONCE);
  }
  printf("%f\n", (now(CLOCK_THREAD_CPUTIME_ID) - begun) / count);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static void exits(int count) {
  int until[2], alive[2];
  double begun;
  start(count, until, alive);
  close(until[0]);
  close(alive[1]);
  begun = now(CLOCK_THREAD_CPUTIME_ID);
  close(until[1]);
  await_end(alive[0]);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  printf("%f\n", (now(CLOCK_THREAD_CPUTIME_ID) - begun) / count);
}

static int compare(const void* one, const void* other) {
  double difference = *(const double*) one - *(const double*) other;
  return (difference > 0) - (difference < 0);
}

static void spawns(size_t mebibytes) {
  static uv_process_t children[SPAWNS];
  double times[SPAWNS];
  int until[2], alive[2];
  int at;
  char* memory = malloc((mebibytes << 20) + 1);
  memset(memory, 1, mebibytes << 20);
  open_pipe(until);
  open_pipe(alive);
  close(until[1]);
  for (at = 0; at < SPAWNS; at++) {
    double begun = now(CLOCK_MONOTONIC);
    spawn(&children[at], until[0], alive[1]);
    times[at] = now(CLOCK_MONOTONIC) - begun;
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  }
  qsort(times, SPAWNS, sizeof(*times), compare);
  printf("%f\n", times[SPAWNS / 2]);
  free(memory);
}

int main(int argc, char** argv) {
  struct rlimit limit;
  if (argc == 2 && strcmp(argv[1], "child") == 0) {
    await_end(0);
    return 0;
  }
  if (argc != 3)
    return 2;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (strcmp(argv[1], "exits") == 0)
    exits(atoi(argv[2]));
  else if (strcmp(argv[1], "apart") == 0)
    apart(atoi(argv[2]));
  else
    spawns(atoi(argv[2]));
  return 0;
}
