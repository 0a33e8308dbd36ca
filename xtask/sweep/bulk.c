/* Scenarios in which more is under way than sockets hold: writes wait, are made in parts, and are told in turn. */
#include "sweep.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK (128 * 1024)
#define CHUNKS 3
#define TOTAL ((size_t) CHUNK * CHUNKS)

static char sent[CHUNK], room[65536];
static union { uv_handle_t handle; uv_stream_t stream; uv_tcp_t tcp; uv_pipe_t pipe; } server, client, peer;
static uv_connect_t connecting;
static struct direction {
  uv_write_t writes[CHUNKS];
  uv_shutdown_t end;
  size_t arrived;
  int written;
} there, back;

static char byte_at(size_t offset) { return (char) (offset % CHUNK * 31 / 7); }
static void give_room(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) handle, (void) size;
  *buf = uv_buf_init(room, sizeof room);
}
static void on_end(uv_shutdown_t* request, int status) { reported(request, status); }
static void on_write(uv_write_t* request, int status) {
  struct direction* way = request->data;
  if (status == 0 && request != &way->writes[way->written]) fault("writes are told out of turn");
  way->written++;
  reported(request, status);
}
static void send_all(uv_stream_t* stream, struct direction* way) {
  for (int at = 0; at < CHUNKS; at++) {
    uv_buf_t parts[] = { uv_buf_init(sent, 100), uv_buf_init(sent + 100, CHUNK - 100) };
    way->writes[at].data = way;
    if (TRY(uv_write(&way->writes[at], stream, parts, 2, on_write)) < 0) return;
    submitted(&way->writes[at]);
  }
  if (TRY(uv_shutdown(&way->end, stream, on_end)) == 0) submitted(&way->end);
}
/* Takes what has come; whether that was the end. */
static int arrives(struct direction* way, ssize_t count) {
  if (count == UV_EOF) {
    if (way->arrived != TOTAL) note(UV_EOF, "read");
    return way->arrived == TOTAL;
  }
  if (note((int) count, "read") <= 0) return 0;
  for (ssize_t at = 0; at < count; at++)
    if (room[at] != byte_at(way->arrived + (size_t) at)) {
      fault("other bytes have come than were sent");
      give_up();
      return 0;
    }
  way->arrived += (size_t) count;
  return 0;
}
static void on_there(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) buf;
  if (arrives(&there, count)) send_all(stream, &back);
}
static void on_back(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) stream, (void) buf;
  if (!arrives(&back, count)) return;
  aim_reached();
  give_up();
}
static void on_connect(uv_connect_t* request, int status) {
  reported(request, status);
  if (status < 0 || TRY(uv_read_start(&client.stream, give_room, on_back)) < 0) return;
  int size = 16 * 1024;
  TRY(uv_send_buffer_size(&client.handle, &size));
  send_all(&client.stream, &there);
}
static void on_connection(uv_stream_t* listener, int status) {
  if (note(status, "connection") < 0) return;
  int is_pipe = listener->type == UV_NAMED_PIPE;
  int made = is_pipe ? uv_pipe_init(loop, &peer.pipe, 0) : uv_tcp_init(loop, &peer.tcp);
  if (note(made, "init") < 0 || TRY(uv_accept(listener, &peer.stream)) < 0) return;
  TRY(uv_read_start(&peer.stream, give_room, on_there));
}
static void fresh(void) {
  memset(&there, 0, sizeof there);
  memset(&back, 0, sizeof back);
  for (size_t at = 0; at < CHUNK; at++) sent[at] = byte_at(at);
}

void tcp_bulk(void) {
  struct sockaddr_storage address;
  int size = sizeof address;
  fresh();
  TRY(uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in*) &address));
  if (TRY(uv_tcp_init(loop, &server.tcp)) < 0 || TRY(uv_tcp_init(loop, &client.tcp)) < 0) return;
  if (TRY(uv_tcp_bind(&server.tcp, (struct sockaddr*) &address, 0)) < 0) return;
  if (TRY(uv_listen(&server.stream, 8, on_connection)) < 0) return;
  if (TRY(uv_tcp_getsockname(&server.tcp, (struct sockaddr*) &address, &size)) < 0) return;
  if (TRY(uv_tcp_connect(&connecting, &client.tcp, (struct sockaddr*) &address, on_connect)) == 0) submitted(&connecting);
}
void pipe_bulk(void) {
  const char* path = "bulk.sock";
  fresh();
  unlink(path);
  if (TRY(uv_pipe_init(loop, &server.pipe, 0)) < 0 || TRY(uv_pipe_init(loop, &client.pipe, 0)) < 0) return;
  if (TRY(uv_pipe_bind(&server.pipe, path)) < 0) return;
  if (TRY(uv_listen(&server.stream, 8, on_connection)) < 0) return;
  submitted(&connecting);
  uv_pipe_connect(&connecting, &client.pipe, path, on_connect);
}

/* Three sockets over one pipe, one after the other, taken together. */
static uv_pipe_t ends[2];
static uv_tcp_t passed[3], taken[3];
static uv_write_t passing[3];
static int taken_count;
static void on_passed(uv_write_t* request, int status) { reported(request, status); }
static void on_handles(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) buf;
  if (note((int) count, "read") <= 0) return;
  while (uv_pipe_pending_count((uv_pipe_t*) stream) > 0) {
    if (TRY(uv_tcp_init(loop, &taken[taken_count])) < 0) return;
    if (TRY(uv_accept(stream, (uv_stream_t*) &taken[taken_count++])) < 0) return;
  }
  if (taken_count < 3) return;
  aim_reached();
  give_up();
}
void ipc_bulk(void) {
  uv_os_sock_t pair[2];
  struct sockaddr_in address;
  uv_buf_t buf = uv_buf_init("x", 1);
  int opened[2] = { -1, -1 };
  taken_count = 0;
  TRY(uv_ip4_addr("127.0.0.1", 0, &address));
  for (int at = 0; at < 3; at++) {
    if (TRY(uv_tcp_init(loop, &passed[at])) < 0) return;
    if (TRY(uv_tcp_bind(&passed[at], (struct sockaddr*) &address, 0)) < 0) return;
  }
  if (TRY(uv_socketpair(SOCK_STREAM, 0, pair, UV_NONBLOCK_PIPE, UV_NONBLOCK_PIPE)) < 0) return;
  for (int at = 0; at < 2; at++) {
    if (TRY(uv_pipe_init(loop, &ends[at], 1)) == 0) opened[at] = TRY(uv_pipe_open(&ends[at], pair[at]));
    if (opened[at] < 0) close(pair[at]);
  }
  if (opened[0] < 0 || opened[1] < 0) return;
  for (int at = 0; at < 3; at++) {
    uv_stream_t* handle = (uv_stream_t*) &passed[at];
    if (TRY(uv_write2(&passing[at], (uv_stream_t*) &ends[0], &buf, 1, handle, on_passed)) < 0) return;
    submitted(&passing[at]);
  }
  TRY(uv_read_start((uv_stream_t*) &ends[1], give_room, on_handles));
}
