/* Processes: spawns with random options. Every child ends by itself or is killed at once, and the step
 * waits for its exit and for the ends of its streams. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

struct child {
  uv_process_t process;
  uv_pipe_t pipes[3];
  int count, number;
  int fds[2]; /* a pipe that the child gets an end of */
  char output[3][300];
};

static void on_gone(uv_handle_t* handle) {
  struct child* child = handle->data;
  if (--child->count == 0) {
    for (int i = 0; i < 2; i++) if (child->fds[i] >= 0) close(child->fds[i]);
    free(child);
  }
  awaited--;
}
static void part(struct child* child, void* handle) {
  ((uv_handle_t*) handle)->data = child;
  child->count++;
  awaited++;
}
static void on_read(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  struct child* child = stream->data;
  long at = (uv_pipe_t*) stream - child->pipes;
  if (nread >= 0) {
    strncat(child->output[at], buf->base, (size_t) nread < 100 ? (size_t) nread : 100);
    return;
  }
  for (char* c = child->output[at]; *c != 0; c++) if (*c == '\n') *c = '|';
  say("child %d stream %ld: '%.100s', %s", child->number, at, child->output[at], name((int) nread));
  uv_close((uv_handle_t*) stream, on_gone);
}
static void on_exit_(uv_process_t* process, int64_t status, int signal) {
  struct child* child = process->data;
  say("child %d exit %lld signal %d, kill %s", child->number, (long long) status, signal,
      name(uv_process_kill(process, SIGTERM)));
  uv_close((uv_handle_t*) process, on_gone);
}

/* The one that is killed names its program by an absolute path: one that cannot be found ends by itself,
 * before it is killed or not. Of the signals that a child ignores those of the C library are left out. */
enum { KILLED = 4, SCRIPTS = 14 };
static const char* scripts[SCRIPTS] = {
    "exit 0", "exit 7", "kill -TERM $$", "kill -PIPE $$", "exec /bin/sleep 1000", "echo out; echo error >&2",
    "pwd -P | sed 's,.*/,,'; echo $X", "exit 255", "trap", "ulimit -c", "cat", "cat; cat <&3",
    "for fd in /proc/self/fd/*; do echo $fd; done | wc -l",
    "sed -n 's/^Sig[BI].*\\(.......\\)$/\\1/p' /proc/self/status",
};

/* What the child reads from: it ends in every case. */
static int give_input(struct child* child, uv_stdio_container_t* to, unsigned how) {
  to->flags = UV_IGNORE;
  if (how == 0) return 0;
  if (how == 4) {
    to->flags = UV_INHERIT_FD;
    to->data.fd = below(2) ? -1 : 9999;
    return 0;
  }
  if (how == 1) {
    uv_pipe_init(&loop, &child->pipes[0], 0);
    part(child, &child->pipes[0]);
    to->flags = UV_CREATE_PIPE | UV_READABLE_PIPE;
    to->data.stream = (uv_stream_t*) &child->pipes[0];
    return 1;
  }
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, child->fds) != 0 || write(child->fds[1], "given", 5) != 5) abort();
  close(child->fds[1]);
  child->fds[1] = -1;
  to->flags = UV_INHERIT_FD;
  to->data.fd = child->fds[0];
  if (how == 3) {
    uv_pipe_init(&loop, &child->pipes[0], 0);
    part(child, &child->pipes[0]);
    uv_pipe_open(&child->pipes[0], child->fds[0]);
    child->fds[0] = -1;
    to->flags = UV_INHERIT_STREAM;
    to->data.stream = (uv_stream_t*) &child->pipes[0];
    return 1;
  }
  return 0;
}

static void choose(uv_process_options_t* options, unsigned form) {
  static char* env[] = {"X=y", "PATH=/usr/bin:/bin", NULL};
  static char* bare[] = {"X=", "PATH=/missing", NULL};
  switch (form) {
    case 0: options->file = (const char*[]){"missing", "", "/", "/etc/passwd", "sh"}[below(5)]; break;
    case 1: options->cwd = below(2) ? "missing" : "/tmp"; break;
    case 2: options->env = env; options->file = "sh"; break;
    case 3: options->env = bare; options->file = below(2) ? "sh" : "/bin/sh"; break;
    case 4: options->flags = UV_PROCESS_DETACHED; break;
    case 5: options->flags = UV_PROCESS_WINDOWS_HIDE | UV_PROCESS_WINDOWS_VERBATIM_ARGUMENTS; break;
    case 6: options->flags = UV_PROCESS_SETUID; options->uid = below(2) ? getuid() : 0; break;
    case 7: options->flags = UV_PROCESS_SETGID; options->gid = below(2) ? getgid() : 0; break;
    case 8: options->exit_cb = NULL; break;
  }
}

int process_op(void) {
  static int children;
  struct child* child = calloc(1, sizeof *child);
  unsigned script = below(SCRIPTS), form = below(11), streams = 1 + below(3), input = below(3) ? below(4) : below(5);
  int result, has_input, signal = (int[]){SIGTERM, SIGKILL, SIGINT, SIGUSR1, SIGPIPE}[below(5)];
  char* args[] = {"sh", "-c", (char*) scripts[script], NULL};
  uv_stdio_container_t stdio[4];
  uv_process_options_t options = {.file = "/bin/sh", .args = args, .exit_cb = on_exit_, .stdio = stdio};
  options.stdio_count = script == 11 ? 4 : 3;
  child->number = ++children;
  child->fds[0] = child->fds[1] = -1;
  choose(&options, form);
  if (form == 1 && input == 4) input = 0; /* Which of two errors is told depends on further options there. */
  part(child, &child->process);
  memset(stdio, 0, sizeof stdio);
  has_input = give_input(child, &stdio[0], input);
  for (unsigned i = 1; i < streams; i++) {
    uv_pipe_init(&loop, &child->pipes[i], 0);
    part(child, &child->pipes[i]);
    stdio[i].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE | (below(2) ? UV_READABLE_PIPE : 0);
    stdio[i].data.stream = (uv_stream_t*) &child->pipes[i];
  }
  result = uv_spawn(&loop, &child->process, &options);
  say("spawn %d form %u script %u streams %u input %u: %s pid %d", child->number, form, script, streams, input, name(result),
      uv_process_get_pid(&child->process) > 0);
  for (unsigned i = 1; i < streams; i++) {
    if (result == 0) uv_read_start((uv_stream_t*) &child->pipes[i], on_alloc, on_read);
    else uv_close((uv_handle_t*) &child->pipes[i], on_gone);
  }
  if (has_input) {
    /* A child that does not read may be gone already: what it has read, it tells. */
    if (result == 0 && input == 1) uv_try_write((uv_stream_t*) &child->pipes[0], &(uv_buf_t){.base = "typed", .len = 5}, 1);
    uv_close((uv_handle_t*) &child->pipes[0], on_gone);
  }
  if (result == 0 && script == KILLED) say("kill %d: %s", signal, name(uv_process_kill(&child->process, signal)));
  else if (result == 0 && below(8) == 0)
    say("kill 0: %s, %s", name(uv_process_kill(&child->process, 0)), name(uv_process_kill(&child->process, 999)));
  /* One whose exit nobody hears of, and one that is not waited for. */
  if (result != 0 || options.exit_cb == NULL || form == 9) uv_close((uv_handle_t*) &child->process, on_gone);
  return 1;
}
