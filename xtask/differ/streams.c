/* Streams among the handles that live from step to step. Not printed: numbers of ports, and in how many
 * pieces bytes come. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

static char room[65536];

void on_alloc(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) handle; (void) size;
  *buf = uv_buf_init(room, sizeof room);
}
static void on_read(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  (void) buf;
  struct slot* slot = (struct slot*) stream;
  if (nread > 0) slot->bytes += nread;
  if (nread < 0) {
    /* Of a Unix socket that is reset after bytes came, ours are whole, and it is an end. */
    say("%d read %s", of(stream), nread == UV_ECONNRESET && slot->kind == PIPE ? "EOF" : name((int) nread));
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

static struct sockaddr_storage refused4, refused_udp;

void reserve_refused(void) {
  socklen_t size = sizeof refused4;
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0); /* Bound and not listening: connections are refused. */
  bind(fd, (struct sockaddr*) &in, sizeof in);
  getsockname(fd, (struct sockaddr*) &refused4, &size);
  /* A port that the kernel does not give out by itself: nobody is there, unless a call says so. */
  uv_ip4_addr("127.0.0.1", 20000, (struct sockaddr_in*) &refused_udp);
}

void address(struct sockaddr_storage* to, int kind, int connects) {
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
    /* A port without a listener may be the one that the kernel gives to the socket itself, which then meets
     * itself there. */
    if (peer != NULL && (kind != TCP || peer->listens) &&
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

void stream_op(struct slot* slot) {
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
      /* There is room for all: who finds none tries again after a second. */
      result = uv_listen(stream, 100 + below(5), on_connection);
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

void tcp_op(struct slot* slot) {
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

void pipe_op(struct slot* slot) {
  uv_pipe_t* pipe_ = &slot->any.pipe;
  int i = of(slot), result, pair[2];
  const char* path = paths[below(5)];
  char text[200];
  size_t size = sizeof text;
  int op = below(12);
  /* Of a handle that connects already, the original forgets the first request. */
  if ((slot->listens || slot->unpolled || slot->connects) && op >= 3 && op <= 5) return;
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
      step_ends = 1; /* If the server closes now, ours tells of the connection first, and the original of its end. */
      if (result != 0) free(req);
      break;
    }
    case 5: {
      uv_connect_t* req = request(sizeof *req);
      uv_pipe_connect(req, pipe_, path, on_connect);
      slot->connects = 1;
      say("%d connect %d '%s'", i, requests, path);
      step_ends = 1;
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
