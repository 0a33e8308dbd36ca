/* Calls functions of libuv in a random order, decided by a seed alone, and prints what each call
 * returned, what was called back since, and what the handles say of themselves. Two libraries that
 * behave alike print the same. What may differ without harm is not printed: numbers of ports and
 * descriptors, the order of callbacks within one step, and in how many pieces bytes come. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "differ.h"

enum { SLOTS = 8, LINES = 4000, BYTES = 5000 };

struct slot {
  union uv_any_handle any; /* First, so that a handle's address is its slot's. */
  int state;               /* 0 free, 1 open, 2 closing */
  int kind;
  int listens;  /* The original never reports requests of a server, nor does it fail them. */
  int failed;   /* to connect: the original does not always say that there is nothing to read. */
  int connects; /* The original forgets a shutdown if the connection then fails. */
  int unpolled; /* Its descriptor is a file: the original aborts when it is to be polled. */
  int once;     /* The original does not forget that a signal was to be told once. */
  long bytes;   /* read in this step */
};

enum { TCP, PIPE, UDP, TIMER, ASYNC, IDLE, PREPARE, CHECK, POLL, SIGNAL, FS_EVENT, FS_POLL, KINDS };
static const char* kinds[] = {"tcp",   "pipe", "udp",  "timer",  "async",    "idle",   "prepare",
                              "check", "poll", "signal", "fs_event", "fs_poll"};

static struct slot slots[SLOTS];
uv_loop_t loop;
int awaited;
static unsigned share; /* of 4 acts go to files or processes */
static char lines[LINES][160];
static int line_count, step, requests, acts;
static char bytes[BYTES], room[65536];
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

static int of(void* handle) { return (int) ((struct slot*) handle - slots); }
const char* name(int error) { return error >= 0 ? "ok" : uv_err_name(error); }

static void on_close(uv_handle_t* handle) {
  say("%d closed", of(handle));
  ((struct slot*) handle)->state = 0;
}
static void on_alloc(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) handle; (void) size;
  *buf = uv_buf_init(room, sizeof room);
}
static void on_read(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  (void) buf;
  struct slot* slot = (struct slot*) stream;
  if (nread > 0) slot->bytes += nread;
  if (nread < 0) {
    /* Where bytes came before a reset, ours are whole, and it is an end. */
    say("%d read %s", of(stream), nread == UV_ECONNRESET ? "EOF" : name((int) nread));
    uv_read_stop(stream);
    slot->failed = 1;
  }
}
static void on_write(uv_write_t* req, int status) {
  say("%d write %d %s", of(req->handle), (int) (long) req->data, name(status));
  free(req);
}
static void on_shutdown(uv_shutdown_t* req, int status) {
  say("%d shutdown %d %s", of(req->handle), (int) (long) req->data, name(status));
  free(req);
}
static void on_connect(uv_connect_t* req, int status) {
  say("%d connect %d %s", of(req->handle), (int) (long) req->data, name(status));
  if (status != 0) ((struct slot*) req->handle)->failed = 1;
  ((struct slot*) req->handle)->connects = 0;
  free(req);
}
static void on_connection(uv_stream_t* server, int status) {
  say("%d connection %s", of(server), name(status));
}
static void on_send(uv_udp_send_t* req, int status) {
  say("%d send %d %s", of(req->handle), (int) (long) req->data, name(status));
  free(req);
}
static void on_recv(uv_udp_t* udp, ssize_t nread, const uv_buf_t* buf, const struct sockaddr* from,
                    unsigned flags) {
  (void) buf;
  if (nread == 0 && from == NULL) return;
  say("%d recv %s %ld %u", of(udp), name((int) nread), (int) nread < 0 ? 0L : (long) nread,
      flags & ~UV_UDP_MMSG_FREE & ~UV_UDP_MMSG_CHUNK);
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

static void* request(size_t size) {
  uv_req_t* req = calloc(1, size);
  req->data = (void*) (long) ++requests;
  return req;
}

static struct slot* any(int kind) {
  unsigned first = below(SLOTS);
  for (unsigned i = 0; i < SLOTS; i++) {
    struct slot* slot = &slots[(first + i) % SLOTS];
    if (slot->state != 0 && (kind < 0 || slot->kind == kind)) return slot;
  }
  return NULL;
}

static struct sockaddr_storage refused4, refused_udp;

static void reserve_refused(void) {
  socklen_t size = sizeof refused4;
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0); /* Bound and not listening: connections are refused. */
  bind(fd, (struct sockaddr*) &in, sizeof in);
  getsockname(fd, (struct sockaddr*) &refused4, &size);
  fd = socket(AF_INET, SOCK_DGRAM, 0);
  size = sizeof refused_udp;
  bind(fd, (struct sockaddr*) &in, sizeof in);
  getsockname(fd, (struct sockaddr*) &refused_udp, &size);
  close(fd);
}

/* An address to bind to or to connect to. */
static void address(struct sockaddr_storage* to, int kind, int connects) {
  int size = sizeof *to;
  struct slot* peer = any(kind);
  memset(to, 0, sizeof *to);
  switch (below(6)) {
    case 0:
      uv_ip6_addr("::1", 0, (struct sockaddr_in6*) to);
      if (!connects) return;
      break;
    case 1:
      *to = kind == TCP ? refused4 : refused_udp;
      return;
  }
  if (connects || below(5) == 0) {
    if (peer != NULL &&
        (kind == TCP ? uv_tcp_getsockname(&peer->any.tcp, (struct sockaddr*) to, &size)
                     : uv_udp_getsockname(&peer->any.udp, (struct sockaddr*) to, &size)) == 0 &&
        to->ss_family != 0)
      return;
    *to = kind == TCP ? refused4 : refused_udp;
    return;
  }
  uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in*) to);
}

static const char* paths[] = {"a", "b", "missing/c", "", "d"};

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

static void stream_op(struct slot* slot) {
  uv_stream_t* stream = &slot->any.stream;
  int i = of(slot), result;
  uv_buf_t bufs[3];
  unsigned count = 1 + below(3), size = 1 + (below(3) ? below(100) : below(BYTES - 1));
  for (unsigned n = 0; n < 3; n++) bufs[n] = uv_buf_init(bytes, size);
  int op = below(14);
  if (slot->unpolled && (op < 8 || op == 10 || op == 11)) return;
  if ((slot->listens && op < 7) || (slot->failed && op < 7) || (slot->connects && (op == 6 || op == 7))) return;
  switch (op) {
    case 0: case 1: say("%d read_start: %s", i, name(uv_read_start(stream, below(20) ? on_alloc : NULL, on_read))); break;
    case 2: say("%d read_stop: %s", i, name(uv_read_stop(stream))); break;
    case 3: case 4: {
      uv_write_t* req = request(sizeof *req);
      result = uv_write(req, stream, bufs, count, below(8) ? on_write : NULL);
      say("%d write %d of %u * %u: %s", i, requests, count, size, name(result));
      if (result != 0) free(req);
      break;
    }
    case 5:
      result = uv_try_write(stream, bufs, count);
      /* Whether there is no room or nobody to write to may be found out earlier or later. */
      say("%d try_write of %u * %u: %s %d", i, count, size,
          result == UV_EAGAIN || result == UV_EPIPE ? "nothing" : name(result), result < 0 ? -1 : result);
      break;
    case 6: {
      uv_shutdown_t* req = request(sizeof *req);
      result = uv_shutdown(req, stream, on_shutdown);
      say("%d shutdown %d: %s", i, requests, name(result));
      if (result != 0) free(req);
      break;
    }
    case 7:
      result = uv_listen(stream, 1 + below(5), on_connection);
      slot->listens |= result == 0;
      say("%d listen: %s", i, name(result));
      break;
    case 8: case 9: {
      struct slot* client = any(below(8) ? slot->kind : -1);
      if (client == NULL || client == slot || client->kind > UDP) break;
      say("%d accept into %d: %s", i, of(client), name(uv_accept(stream, &client->any.stream)));
      break;
    }
    case 10: {
      struct slot* sent = any(-1);
      uv_write_t* req;
      if (sent == NULL || sent->kind > UDP) break;
      req = request(sizeof *req);
      result = uv_write2(req, stream, bufs, 1, &sent->any.stream, on_write);
      say("%d write2 %d of %u with %d: %s", i, requests, size, of(sent), name(result));
      if (result != 0) free(req);
      break;
    }
    case 11: {
      struct slot* sent = any(-1);
      if (sent == NULL || sent->kind > UDP) break;
      result = uv_try_write2(stream, bufs, 1, &sent->any.stream);
      say("%d try_write2 of %u with %d: %s %d", i, size, of(sent), name(result), result);
      break;
    }
    case 12: {
      int value = 0;
      result = uv_send_buffer_size((uv_handle_t*) stream, &value);
      say("%d send_buffer_size: %s", i, name(result));
      value = 0;
      result = uv_recv_buffer_size((uv_handle_t*) stream, &value);
      say("%d recv_buffer_size: %s", i, name(result));
      break;
    }
    case 13: if (below(3) == 0) say("%d set_blocking 0: %s", i, name(uv_stream_set_blocking(stream, 0))); break;
  }
}

static void tcp_op(struct slot* slot) {
  uv_tcp_t* tcp = &slot->any.tcp;
  struct sockaddr_storage to;
  int i = of(slot), result, flags;
  switch (below(10)) {
    case 0: case 1:
      address(&to, TCP, 0);
      flags = below(4) ? 0 : below(2) ? UV_TCP_IPV6ONLY : UV_TCP_REUSEPORT;
      result = uv_tcp_bind(tcp, (struct sockaddr*) &to, flags);
      say("%d bind %d %d: %s", i, to.ss_family, flags, name(result));
      break;
    case 2: case 3: case 4: {
      uv_connect_t* req = request(sizeof *req);
      address(&to, TCP, 1);
      result = uv_tcp_connect(req, tcp, (struct sockaddr*) &to, on_connect);
      slot->connects |= result == 0;
      slot->failed |= result != 0;
      say("%d connect %d to %d: %s", i, requests, to.ss_family, name(result));
      if (result != 0) free(req);
      break;
    }
    case 5: say("%d nodelay: %s", i, name(uv_tcp_nodelay(tcp, below(2)))); break;
    case 6: flags = below(3); say("%d keepalive %d: %s", i, flags, name(uv_tcp_keepalive(tcp, below(2), flags ? 60 : 0))); break;
    case 7: say("%d simultaneous_accepts: %s", i, name(uv_tcp_simultaneous_accepts(tcp, below(2)))); break;
    case 8: say("%d keepalive_ex: %s", i, name(uv_tcp_keepalive_ex(tcp, 1, below(40), below(10), below(5)))); break;
    case 9:
      if (slot->state == 1 && below(2)) {
        result = uv_tcp_close_reset(tcp, on_close);
        say("%d close_reset: %s", i, name(result));
        if (result == 0) slot->state = 2;
      }
      break;
  }
}

static void pipe_op(struct slot* slot) {
  uv_pipe_t* pipe_ = &slot->any.pipe;
  int i = of(slot), result, pair[2];
  const char* path = paths[below(5)];
  char text[200];
  size_t size = sizeof text;
  int op = below(12);
  if ((slot->listens || slot->unpolled) && op >= 3 && op <= 5) return;
  if (slot->unpolled && op == 7) return; /* The original would change the mode of the device or file. */
  switch (op) {
    case 0: case 1: say("%d bind '%s': %s", i, path, name(uv_pipe_bind(pipe_, path))); break;
    case 2: {
      char own[40];
      int n = snprintf(own, sizeof own, "%c%d-%u", 0, (int) getpid(), below(2));
      result = uv_pipe_bind2(pipe_, own, n, below(2) ? UV_PIPE_NO_TRUNCATE : 0);
      say("%d bind2 abstract: %s", i, name(result));
      break;
    }
    case 3: case 4: {
      uv_connect_t* req = request(sizeof *req);
      result = uv_pipe_connect2(req, pipe_, path, strlen(path), 0, on_connect);
      slot->connects |= result == 0;
      say("%d connect2 %d '%s': %s", i, requests, path, name(result));
      if (result != 0) free(req);
      break;
    }
    case 5: {
      uv_connect_t* req = request(sizeof *req);
      uv_pipe_connect(req, pipe_, path, on_connect);
      slot->connects = 1;
      say("%d connect %d '%s'", i, requests, path);
      break;
    }
    case 6: {
      struct slot* other = any(PIPE);
      int results[2];
      if (other == NULL || other == slot || other->state != 1 || slot->state != 1) break;
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
      results[0] = uv_pipe_open(pipe_, pair[0]);
      results[1] = uv_pipe_open(&other->any.pipe, pair[1]);
      say("%d and %d open: %s %s", i, of(other), name(results[0]), name(results[1]));
      for (int n = 0; n < 2; n++) if (results[n] != 0) close(pair[n]);
      break;
    }
    case 7: {
      int mode = below(5);
      say("%d chmod %d: %s", i, mode, name(uv_pipe_chmod(pipe_, mode)));
      break;
    }
    case 8: say("%d pending %d %d", i, uv_pipe_pending_count(pipe_), uv_pipe_pending_type(pipe_)); break;
    case 9:
      size = below(2) ? sizeof text : below(3);
      result = uv_pipe_getsockname(pipe_, text, &size);
      say("%d getsockname: %s", i, name(result));
      break;
    case 10:
      result = uv_pipe_getpeername(pipe_, text, &size);
      say("%d getpeername: %s %zu", i, name(result), result == 0 && size > 0 && text[0] == 0 ? 1 : size);
      break;
    case 11: {
      int how = below(4), fd = how == 0 ? -1 : how == 1 ? open("/dev/null", O_RDWR) : how == 2 ? open("plain", O_RDONLY) : 999;
      if (slot->state != 1) { if (fd >= 0 && fd != 999) close(fd); break; }
      result = uv_pipe_open(pipe_, fd);
      say("%d open %d: %s", i, how, name(result));
      slot->unpolled |= result == 0;
      if (result != 0 && fd >= 0 && fd != 999) close(fd);
      break;
    }
  }
}

static void udp_op(struct slot* slot) {
  uv_udp_t* udp = &slot->any.udp;
  struct sockaddr_storage to;
  int i = of(slot), result, flags, value;
  unsigned size = below(3) ? below(100) : below(BYTES);
  uv_buf_t buf = uv_buf_init(bytes, size);
  switch (below(20)) {
    case 0: case 1:
      address(&to, UDP, 0);
      flags = (int[]){0, UV_UDP_REUSEADDR, UV_UDP_REUSEPORT, UV_UDP_IPV6ONLY, UV_UDP_LINUX_RECVERR, 4096}[below(6)];
      result = uv_udp_bind(udp, (struct sockaddr*) &to, flags);
      say("%d bind %d %d: %s", i, to.ss_family, flags, name(result));
      break;
    case 2: case 3:
      address(&to, UDP, 1);
      result = uv_udp_connect(udp, below(4) ? (struct sockaddr*) &to : NULL);
      say("%d connect: %s", i, name(result));
      break;
    case 4: case 5: case 6: {
      uv_udp_send_t* req = request(sizeof *req);
      address(&to, UDP, 1);
      result = uv_udp_send(req, udp, &buf, 1, below(2) ? (struct sockaddr*) &to : NULL, on_send);
      say("%d send %d of %u: %s", i, requests, size, name(result));
      if (result != 0) free(req);
      break;
    }
    case 7:
      address(&to, UDP, 1);
      result = uv_udp_try_send(udp, &buf, 1, below(2) ? (struct sockaddr*) &to : NULL);
      say("%d try_send of %u: %s %d", i, size, name(result), result);
      break;
    case 8: case 9: say("%d recv_start: %s", i, name(uv_udp_recv_start(udp, below(20) ? on_alloc : NULL, on_recv))); break;
    case 10: say("%d recv_stop: %s", i, name(uv_udp_recv_stop(udp))); break;
    case 11: value = (int[]){-1, 0, 1, 255, 256}[below(5)]; say("%d set_ttl %d: %s", i, value, name(uv_udp_set_ttl(udp, value))); break;
    case 12: value = (int[]){-1, 0, 1, 255, 256}[below(5)]; say("%d multicast_ttl %d: %s", i, value, name(uv_udp_set_multicast_ttl(udp, value))); break;
    case 13: say("%d multicast_loop: %s", i, name(uv_udp_set_multicast_loop(udp, below(2)))); break;
    case 14: say("%d broadcast: %s", i, name(uv_udp_set_broadcast(udp, below(2)))); break;
    case 15: {
      const char* group = (const char*[]){"239.1.2.3", "nonsense", "127.0.0.1", "ff02::1"}[below(4)];
      const char* on = (const char*[]){"127.0.0.1", NULL, "nonsense", "::1"}[below(4)];
      result = uv_udp_set_membership(udp, group, on, below(2) ? UV_JOIN_GROUP : UV_LEAVE_GROUP);
      say("%d membership %s %s: %s", i, group, on ? on : "-", name(result));
      break;
    }
    case 16: {
      const char* on = (const char*[]){"127.0.0.1", NULL, "nonsense", "::1"}[below(4)];
      say("%d interface %s: %s", i, on ? on : "-", name(uv_udp_set_multicast_interface(udp, on)));
      break;
    }
    case 17: {
      uv_buf_t* each[2] = {&buf, &buf};
      unsigned counts[2] = {1, 1};
      struct sockaddr* both[2] = {(struct sockaddr*) &to, (struct sockaddr*) &to};
      int none = below(2);
      address(&to, UDP, 1);
      if (none) both[0] = both[1] = NULL;
      result = uv_udp_try_send2(udp, below(5) ? 2 : 0, each, counts, both, below(8) ? 0 : 1);
      say("%d try_send2 of %u: %s %d", i, size, name(result), result);
      break;
    }
    case 18: {
      const char* source = (const char*[]){"127.0.0.1", "nonsense", "127.0.0.2"}[below(3)];
      result = uv_udp_set_source_membership(udp, below(2) ? "239.1.2.3" : "nonsense", below(2) ? "127.0.0.1" : NULL, source,
                                            below(2) ? UV_JOIN_GROUP : UV_LEAVE_GROUP);
      say("%d source_membership: %s", i, name(result));
      break;
    }
    case 19: say("%d using_recvmmsg %d", i, uv_udp_using_recvmmsg(udp)); break;
  }
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
        case 0: if (!slot->once) say("%d signal_start %d: %s", i, value, name(uv_signal_start(&slot->any.signal, on_signal, value))); break;
        case 1: slot->once = 1; say("%d oneshot %d: %s", i, value, name(uv_signal_start_oneshot(&slot->any.signal, on_signal, value))); break;
        case 2: say("%d signal_stop: %s", i, name(uv_signal_stop(&slot->any.signal))); break;
        case 3: if (slot->any.signal.signum == SIGUSR1) {
          kill(getpid(), SIGUSR1);
          say("%d kill", i);
          acts = 0; /* What is started now would be stopped by it in the original. */
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

static void act(void) {
  if (below(4) < share) {
    if (below(8) ? file_op() : process_op()) acts = 0;
    return;
  }
  struct slot* slot = &slots[below(SLOTS)];
  uv_handle_t* handle = &slot->any.handle;
  if (slot->state == 0) {
    init(slot);
    return;
  }
  switch (below(16)) {
    case 0:
      if (slot->state == 1) {
        uv_close(handle, on_close);
        slot->state = 2;
        say("%d close", of(slot));
        return;
      }
      break;
    case 1:
      if (slot->state == 1) {
        if (below(2)) uv_ref(handle);
        else uv_unref(handle);
        return;
      }
      break;
  }
  if (slot->state != 1) return; /* It says what it is, and nothing more is to be asked of it. */
  if (slot->kind == TCP && below(2)) tcp_op(slot);
  else if (slot->kind == PIPE && below(2)) pipe_op(slot);
  else if (slot->kind <= PIPE) stream_op(slot);
  else if (slot->kind == UDP) udp_op(slot);
  else other_op(slot);
}

static void settle(int turns) {
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

static void tell(void) {
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

/* The program that the seed decides, in the current directory. */
static void play(unsigned long long seed, int steps) {
  state = seed * 0x9e3779b97f4a7c15ull | 1;
  for (int i = 0; i < 10; i++) below(2);
  signal(SIGPIPE, SIG_IGN);
  alarm(20);
  share = below(4);
  reserve_refused();
  close(open("plain", O_CREAT | O_WRONLY, 0644));
  if (uv_loop_init(&loop) != 0) abort();
  for (step = 0; step < steps; step++) {
    printf("step %d\n", step);
    for (acts = 1 + below(3); acts > 0; acts--) act();
    flush(0);
    settle(50);
    tell();
    flush(1);
  }
  printf("end\n");
  for (int i = 0; i < SLOTS; i++)
    if (slots[i].state == 1) {
      uv_close(&slots[i].any.handle, on_close);
      slots[i].state = 2;
    }
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
