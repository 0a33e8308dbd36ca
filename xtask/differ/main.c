/* Calls functions of libuv in a random order, decided by a seed alone, and prints what each call
 * returned, what was called back since, and what the handles say of themselves. Two libraries that
 * behave alike print the same. What may differ without harm is not printed: numbers of ports and
 * descriptors, the order of callbacks within one step, and in how many pieces bytes come.
 *
 * A step is up to three calls and what follows from them. A call is made by one of the parts: on the
 * handles that live from step to step (handles.c, streams.c, udp.c), or a scene of its own, which is over
 * before the next step begins (the other files). */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "differ.h"

enum { LINES = 4000 };

uv_loop_t loop;
int awaited, requests;
const char* poller;
char bytes[BYTES];
static char lines[LINES][160];
static int line_count;
static unsigned long long state;

unsigned below(unsigned limit) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned) ((state >> 11) % limit);
}

void say(const char* format, ...) {
  va_list arguments;
  if (line_count == LINES) return;
  va_start(arguments, format);
  vsnprintf(lines[line_count++], sizeof lines[0], format, arguments);
  va_end(arguments);
}

static int by_text(const void* a, const void* b) { return strcmp(a, b); }

static void flush(int sorted) {
  if (sorted) qsort(lines, line_count, sizeof lines[0], by_text);
  for (int i = 0; i < line_count; i++) printf("    %s\n", lines[i]);
  line_count = 0;
}

const char* name(int error) { return error >= 0 ? "ok" : uv_err_name(error); }

void* request(size_t size) {
  uv_req_t* req = calloc(1, size);
  req->data = (void*) (long) ++requests;
  return req;
}

void settle(int turns) {
  int quiet = 0;
  for (int i = 0; awaited > 0 || (i < turns && quiet < 4); i++) {
    int before = line_count;
    long read = 0, now = 0;
    for (int s = 0; s < SLOTS; s++) read += slots[s].bytes;
    uv_run(&loop, UV_RUN_NOWAIT);
    for (int s = 0; s < SLOTS; s++) now += slots[s].bytes;
    quiet = line_count == before && read == now ? quiet + 1 : 0;
    if (quiet >= 2) usleep(300);
  }
}


static int (*const parts[])(void) = {
    file_op,   file_op,     file_op, directory_op, process_op, thread_op,       work_op,     nested_op,  signal_op,
    order_op,  datagram_op, poll_op, fs_event_op,  fs_poll_op, conversation_op, terminal_op, system_op,
};
enum { PARTS = sizeof parts / sizeof parts[0] };

/* It took too long: shows what the step has said so far, and dies. */
static void on_alarm(int signum) {
  signal(signum, SIG_DFL);
  alarm(1);
  flush(0);
  raise(signum);
}

/* The program that the seed decides, in the current directory. */
static void play(unsigned long long seed, int steps) {
  unsigned share, favourite; /* how many of 4 calls are scenes, and of which part every second is */
  state = seed * 0x9e3779b97f4a7c15ull | 1;
  for (int i = 0; i < 10; i++) below(2);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGALRM, on_alarm);
  alarm(20);
  share = below(4);
  favourite = below(PARTS);
  poller = getenv("BLACKLIGHT_POLLER") ? getenv("BLACKLIGHT_POLLER") : "";
  reserve_refused();
  close(open("plain", O_CREAT | O_WRONLY, 0644));
  if (uv_loop_init(&loop) != 0) abort();
  for (int step = 0; step < steps; step++) {
    printf("step %d\n", step);
    for (int ends = 0, calls = 1 + (int) below(3); calls > 0 && !ends; calls--)
      ends = below(4) < share ? parts[below(2) ? favourite : below(PARTS)]() : handle_op();
    flush(0);
    settle(50);
    tell_handles();
    flush(1);
  }
  printf("end\n");
  close_handles();
  watchers_end();
  printf("left %d\n", uv_run(&loop, UV_RUN_DEFAULT));
  flush(1);
  printf("loop_close %s\n", name(uv_loop_close(&loop)));
  file_end();
}

/* Plays each seed in a process and a directory of its own. What it prints goes to the file <seed> in
 * the directory of reports; if the process does not end well, the last line begins with "died". */
int main(int argc, char** argv) {
  unsigned long long first, count;
  if (argc != 5) return 2;
  first = strtoull(argv[1], NULL, 10);
  count = strtoull(argv[2], NULL, 10);
  for (unsigned long long seed = first; seed < first + count; seed++) {
    char place[32], report[256];
    int status;
    pid_t child;
    snprintf(place, sizeof place, "%llu", seed);
    snprintf(report, sizeof report, "%s/%020llu", argv[4], seed);
    if (mkdir(place, 0755) != 0) return 2;
    child = fork();
    if (child == 0) {
      if (setpgid(0, 0) != 0 || freopen(report, "a", stdout) == NULL || dup2(1, 2) != 2 || chdir(place) != 0) _exit(2);
      setvbuf(stdout, NULL, _IOLBF, 0);
      play(seed, atoi(argv[3]));
      exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    kill(-child, SIGKILL); /* whatever it has left behind */
    if (status != 0) {
      FILE* last = fopen(report, "a");
      if (last == NULL) return 2;
      fprintf(last, "died of status %#x\n", status);
      fclose(last);
    }
  }
  return 0;
}
