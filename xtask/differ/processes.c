/* Processes: spawns with random options. Every child ends by itself or is killed at once, and the step
 * waits for its exit. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "differ.h"

struct child {
  uv_process_t process;
  uv_pipe_t pipes[3];
  int count, number, bytes[3];
};

static void on_gone(uv_handle_t* handle) {
  struct child* child = handle->data;
  if (--child->count == 0) free(child);
  awaited--;
}
static void part(struct child* child, uv_handle_t* handle) {
  handle->data = child;
  child->count++;
  awaited++;
}
static void on_read(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  struct child* child = stream->data;
  long at = (uv_pipe_t*) stream - child->pipes;
  (void) buf;
  if (nread >= 0) {
    child->bytes[at] += (int) nread;
    return;
  }
  say("child %d stream %ld: %d bytes, %s", child->number, at, child->bytes[at], name((int) nread));
  uv_close((uv_handle_t*) stream, on_gone);
}
static void on_exit_(uv_process_t* process, int64_t status, int signal) {
  struct child* child = process->data;
  say("child %d exit %lld signal %d, kill %s", child->number, (long long) status, signal,
      name(uv_process_kill(process, SIGTERM)));
  uv_close((uv_handle_t*) process, on_gone);
}

/* The one that is killed names its program by an absolute path: one that cannot be found ends by itself,
 * before it is killed or not. */
static const char* scripts[] = {"exit 0", "exit 7", "kill -TERM $$", "kill -PIPE $$", "exec /bin/sleep 1000", "echo out; echo error >&2",
                                "pwd -P | sed 's,.*/,,'; echo $X", "exit 255", "trap", "ulimit -c"};

int process_op(void) {
  static int children;
  struct child* child = calloc(1, sizeof *child);
  unsigned script = below(10), form = below(8), streams = 1 + below(3);
  int result, signal = (int[]){SIGTERM, SIGKILL, SIGINT, SIGUSR1, SIGPIPE}[below(5)];
  char* args[] = {"sh", "-c", (char*) scripts[script], NULL};
  char* env[] = {"X=y", "PATH=/usr/bin:/bin", NULL};
  char* bare[] = {"X=", "PATH=/missing", NULL};
  uv_stdio_container_t stdio[3];
  uv_process_options_t options = {.file = "/bin/sh", .args = args, .exit_cb = on_exit_, .stdio = stdio, .stdio_count = 3};
  child->number = ++children;
  switch (form) {
    case 0: options.file = (const char*[]){"missing", "", "/", "/etc/passwd", "sh"}[below(5)]; break;
    case 1: options.cwd = below(2) ? "missing" : "/tmp"; break;
    case 2: options.env = env; options.file = "sh"; break;
    case 3: options.env = bare; options.file = below(2) ? "sh" : "/bin/sh"; break;
    case 4: options.flags = UV_PROCESS_DETACHED; break;
    case 5: options.flags = UV_PROCESS_WINDOWS_HIDE | UV_PROCESS_WINDOWS_VERBATIM_ARGUMENTS; break;
  }
  part(child, (uv_handle_t*) &child->process);
  memset(stdio, 0, sizeof stdio);
  for (unsigned i = 0; i < 3; i++) {
    if (i == 0 || i >= streams) continue;
    uv_pipe_init(&loop, &child->pipes[i], 0);
    part(child, (uv_handle_t*) &child->pipes[i]);
    stdio[i].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE | (below(2) ? UV_READABLE_PIPE : 0);
    stdio[i].data.stream = (uv_stream_t*) &child->pipes[i];
  }
  result = uv_spawn(&loop, &child->process, &options);
  say("spawn %d form %u script %u streams %u: %s pid %d", child->number, form, script, streams, name(result),
      uv_process_get_pid(&child->process) > 0);
  for (unsigned i = 1; i < streams; i++) {
    if (result == 0) uv_read_start((uv_stream_t*) &child->pipes[i], on_alloc, on_read);
    else uv_close((uv_handle_t*) &child->pipes[i], on_gone);
  }
  if (result != 0) uv_close((uv_handle_t*) &child->process, on_gone);
  else if (script == 4) say("kill %d: %s", signal, name(uv_process_kill(&child->process, signal)));
  else if (below(8) == 0) say("kill 0: %s, %s", name(uv_process_kill(&child->process, 0)), name(uv_process_kill(&child->process, 999)));
  return 1;
}
