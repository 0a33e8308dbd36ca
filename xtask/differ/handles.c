/* The handles that live from step to step. They are made, used, asked and closed at random, so that every
 * kind meets every state of the others. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "differ.h"

static const char* kinds[] = {"tcp",   "pipe", "udp",    "timer",    "async",  "idle",
                              "prepare", "check", "poll", "signal", "fs_event", "fs_poll"};
struct slot slots[SLOTS];
int step_ends;

int of(void* handle) { return (int) ((struct slot*) handle - slots); }
void on_close(uv_handle_t* handle) {
  say("%d closed", of(handle));
  ((struct slot*) handle)->state = 0;
}
static void on_timer(uv_timer_t* handle) { say("%d timer", of(handle)); }
static void on_async(uv_async_t* handle) { say("%d async", of(handle)); }
static void on_idle(uv_idle_t* handle) { ((struct slot*) handle)->bytes = 1; }
static void on_prepare(uv_prepare_t* handle) { ((struct slot*) handle)->bytes = 1; }
static void on_check(uv_check_t* handle) { ((struct slot*) handle)->bytes = 1; }
static void on_poll(uv_poll_t* handle, int status, int events) {
  say("%d poll %s %d", of(handle), name(status), events);
  uv_poll_stop(handle);
}
static void on_signal(uv_signal_t* handle, int signum) { say("%d signal %d", of(handle), signum); }
static void on_fs_event(uv_fs_event_t* handle, const char* path, int events, int status) {
  say("%d fs_event %s %d %s", of(handle), path ? path : "-", events, name(status));
}
static void on_fs_poll(uv_fs_poll_t* handle, int status, const uv_stat_t* a, const uv_stat_t* b) {
  (void) a; (void) b;
  say("%d fs_poll %s", of(handle), name(status));
}


struct slot* any(int kind) {
  unsigned first = below(SLOTS);
  for (unsigned i = 0; i < SLOTS; i++) {
    struct slot* slot = &slots[(first + i) % SLOTS];
    if (slot->state != 0 && (kind < 0 || slot->kind == kind)) return slot;
  }
  return NULL;
}

static void init(struct slot* slot) {
  int kind = below(3) ? (int) below(3) : (int) below(KINDS);
  int result = 0, pair[2], how = 0;
  memset(slot, 0, sizeof *slot);
  memset(slot, 0xa5, sizeof slot->any);
  switch (kind) {
    case TCP:
      how = below(4);
      result = how ? uv_tcp_init(&loop, &slot->any.tcp)
                   : uv_tcp_init_ex(&loop, &slot->any.tcp, below(2) ? AF_INET : below(2) ? AF_INET6 : 1234);
      break;
    case PIPE: result = uv_pipe_init(&loop, &slot->any.pipe, how = below(2)); break;
    case UDP:
      how = below(4);
      result = how ? uv_udp_init(&loop, &slot->any.udp)
                   : uv_udp_init_ex(&loop, &slot->any.udp,
                                    below(2) ? AF_INET : below(2) ? (AF_INET | UV_UDP_RECVMMSG) : 1234);
      break;
    case TIMER: result = uv_timer_init(&loop, &slot->any.timer); break;
    case ASYNC: result = uv_async_init(&loop, &slot->any.async, below(4) ? on_async : NULL); break;
    case IDLE: result = uv_idle_init(&loop, &slot->any.idle); break;
    case PREPARE: result = uv_prepare_init(&loop, &slot->any.prepare); break;
    case CHECK: result = uv_check_init(&loop, &slot->any.check); break;
    case POLL:
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
      if (below(2)) (void) !write(pair[1], "x", 1);
      if (below(8) == 0) pair[0] = open("plain", O_RDONLY);
      else if (below(8) == 0) pair[0] = -1;
      result = uv_poll_init(&loop, &slot->any.poll, pair[0]);
      break;
    case SIGNAL: result = uv_signal_init(&loop, &slot->any.signal); break;
    case FS_EVENT: result = uv_fs_event_init(&loop, &slot->any.fs_event); break;
    case FS_POLL: result = uv_fs_poll_init(&loop, &slot->any.fs_poll); break;
  }
  slot->kind = kind;
  slot->state = result == 0;
  say("%d init %s %d: %s", of(slot), kinds[kind], how, name(result));
}

static void other_op(struct slot* slot) {
  int i = of(slot), result, value;
  char text[300];
  size_t size = sizeof text;
  switch (slot->kind) {
    case TIMER:
      switch (below(5)) {
        case 0: value = below(3); say("%d timer_start %d: %s", i, value, name(uv_timer_start(&slot->any.timer, below(20) ? on_timer : NULL, value ? 1000000 : 0, below(2) ? 0 : 1000000))); break;
        case 1: say("%d timer_stop: %s", i, name(uv_timer_stop(&slot->any.timer))); break;
        case 2: say("%d timer_again: %s", i, name(uv_timer_again(&slot->any.timer))); break;
        case 3: uv_timer_set_repeat(&slot->any.timer, below(2) * 500000); say("%d repeat %d", i, (int) uv_timer_get_repeat(&slot->any.timer)); break;
        case 4: say("%d due %d", i, uv_timer_get_due_in(&slot->any.timer) > 0); break;
      }
      break;
    case ASYNC: if (slot->state == 1) say("%d async_send: %s", i, name(uv_async_send(&slot->any.async))); break;
    case IDLE: result = below(2) ? uv_idle_start(&slot->any.idle, below(8) ? on_idle : NULL) : uv_idle_stop(&slot->any.idle); say("%d idle: %s", i, name(result)); break;
    case PREPARE: result = below(2) ? uv_prepare_start(&slot->any.prepare, below(8) ? on_prepare : NULL) : uv_prepare_stop(&slot->any.prepare); say("%d prepare: %s", i, name(result)); break;
    case CHECK: result = below(2) ? uv_check_start(&slot->any.check, below(8) ? on_check : NULL) : uv_check_stop(&slot->any.check); say("%d check: %s", i, name(result)); break;
    case POLL:
      if (slot->state != 1) break;
      value = below(16);
      result = below(4) ? uv_poll_start(&slot->any.poll, value, on_poll) : uv_poll_stop(&slot->any.poll);
      say("%d poll %d: %s", i, value, name(result));
      break;
    case SIGNAL:
      value = (int[]){0, SIGUSR1, 99999, -1, SIGKILL}[below(5)];
      switch (below(4)) {
        case 0: case 1:
          if (slot->signals == 0) slot->signals = 1 + below(2);
          result = slot->signals == 1 ? uv_signal_start(&slot->any.signal, on_signal, value)
                                      : uv_signal_start_oneshot(&slot->any.signal, on_signal, value);
          say("%d signal_start %d %d: %s", i, slot->signals, value, name(result));
          break;
        case 2: say("%d signal_stop: %s", i, name(uv_signal_stop(&slot->any.signal))); break;
        case 3: if (slot->any.signal.signum == SIGUSR1 && uv_has_ref(&slot->any.handle)) { /* It is told in this step. */
          kill(getpid(), SIGUSR1);
          say("%d kill", i);
          step_ends = 1; /* What is started now would be stopped by it in the original. */
        } break;
      }
      break;
    case FS_EVENT:
      switch (below(6)) {
        case 0: say("%d fs_event_start: %s", i, name(uv_fs_event_start(&slot->any.fs_event, on_fs_event, below(3) ? "." : "missing/x", 0))); break;
        case 1: say("%d fs_event_stop: %s", i, name(uv_fs_event_stop(&slot->any.fs_event))); break;
        case 2: size = below(2) ? sizeof text : 1; result = uv_fs_event_getpath(&slot->any.fs_event, text, &size); say("%d getpath: %s %zu", i, name(result), size); break;
        case 3: close(open("file", O_CREAT | O_WRONLY, 0600)); break;
        case 4: unlink("file"); break;
        case 5: mkdir("dir", 0700); chmod("dir", 0755); rmdir("dir"); break;
      }
      break;
    case FS_POLL:
      switch (below(3)) {
        case 0: say("%d fs_poll_start: %s", i, name(uv_fs_poll_start(&slot->any.fs_poll, on_fs_poll, ".", 1000000))); break;
        case 1: break; /* In the original something of its own goes on closing. */
        case 2: size = below(2) ? sizeof text : 1; result = uv_fs_poll_getpath(&slot->any.fs_poll, text, &size); say("%d getpath: %s %zu", i, name(result), size); break;
      }
      break;
  }
}

int handle_op(void) {
  struct slot* slot = &slots[below(SLOTS)];
  uv_handle_t* handle = &slot->any.handle;
  step_ends = 0;
  if (slot->state == 0) {
    init(slot);
    return 0;
  }
  switch (below(16)) {
    case 0:
      if (slot->state == 1) {
        uv_close(handle, on_close);
        slot->state = 2;
        say("%d close", of(slot));
        return 0;
      }
      break;
    case 1:
      if (slot->state == 1) {
        if (below(2)) uv_ref(handle);
        else uv_unref(handle);
        return 0;
      }
      break;
  }
  if (slot->state != 1) return 0; /* It says what it is, and nothing more is to be asked of it. */
  if (slot->kind == TCP && below(2)) tcp_op(slot);
  else if (slot->kind == PIPE && below(2)) pipe_op(slot);
  else if (slot->kind <= PIPE) stream_op(slot);
  else if (slot->kind == UDP) udp_op(slot);
  else other_op(slot);
  return step_ends;
}

void tell_handles(void) {
  for (int i = 0; i < SLOTS; i++) {
    struct slot* slot = &slots[i];
    uv_handle_t* handle = &slot->any.handle;
    struct sockaddr_storage at;
    int size = sizeof at;
    uv_os_fd_t fd;
    if (slot->bytes != 0) say("%d has read %ld", i, slot->bytes);
    slot->bytes = 0;
    if (slot->state == 0) continue;
    say("%d: %s active %d closing %d ref %d fileno %s", i, uv_handle_type_name(handle->type), uv_is_active(handle),
        uv_is_closing(handle), uv_has_ref(handle), name(uv_fileno(handle, &fd)));
    if (slot->kind <= PIPE && !slot->failed)
      say("%d: readable %d writable %d queue %zu", i, uv_is_readable(&slot->any.stream), uv_is_writable(&slot->any.stream),
          uv_stream_get_write_queue_size(&slot->any.stream));
    if (slot->kind == TCP) {
      say("%d: sockname %s", i, name(uv_tcp_getsockname(&slot->any.tcp, (struct sockaddr*) &at, &size)));
      size = sizeof at;
      say("%d: peername %s", i, name(uv_tcp_getpeername(&slot->any.tcp, (struct sockaddr*) &at, &size)));
    }
    if (slot->kind == UDP) {
      say("%d: sockname %s", i, name(uv_udp_getsockname(&slot->any.udp, (struct sockaddr*) &at, &size)));
      size = sizeof at;
      say("%d: peername %s queue %zu %zu", i, name(uv_udp_getpeername(&slot->any.udp, (struct sockaddr*) &at, &size)),
          uv_udp_get_send_queue_size(&slot->any.udp), uv_udp_get_send_queue_count(&slot->any.udp));
    }
  }
  say("alive %d", uv_loop_alive(&loop));
}

void close_handles(void) {
  for (int i = 0; i < SLOTS; i++)
    if (slots[i].state == 1) {
      uv_close(&slots[i].any.handle, on_close);
      slots[i].state = 2;
    }
}
