/* Two streams that are connected: one asks, the other reads to the end and answers. Both sides know what
 * is to come, so that all requests, bytes and ends are certain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

enum { WRITES = 4, LARGE = 300000 };
enum { AS_PIPE, AS_TCP, AS_IPC, FORMS };

static struct {
  union uv_any_handle listener, asks, answers, sent, taken; /* what is sent with a write is taken there */
  uv_connect_t connect;
  uv_write_t writes[WRITES], reply;
  uv_shutdown_t shutdowns[2];
  int number, form, count, sizes[WRITES], answer, room, starve, pauses, resets, sends;
  long asked, answered; /* bytes that have arrived */
  int allocations, open;
} talk;
static char data[LARGE], room[65536];

static void on_gone(uv_handle_t* handle) {
  (void) handle;
  if (--talk.open > 0) return;
  say("conversation %d: %ld bytes and %ld", talk.number, talk.asked, talk.answered);
  awaited--;
}
static void gone(void* handle) { if (!uv_is_closing(handle)) uv_close(handle, on_gone); }
static char side(void* handle) { return handle == &talk.asks ? 'A' : 'B'; }

static void on_write(uv_write_t* req, int status) {
  long i = req == &talk.reply ? -1 : req - talk.writes;
  say("conversation %d write %ld: %s, all %d", talk.number, i, name(status),
      uv_write_nwritten(req) == (size_t) (i < 0 ? talk.answer : talk.sizes[i]));
}
static void on_shutdown(uv_shutdown_t* req, int status) {
  say("conversation %d shutdown %c: %s", talk.number, side(req->handle), name(status));
}
static void on_room(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) handle; (void) size;
  *buf = ++talk.allocations == talk.starve ? uv_buf_init(NULL, 0) : uv_buf_init(room, (unsigned) talk.room);
}

/* Takes what has come with the bytes. */
static void take(uv_stream_t* stream) {
  uv_pipe_t* pipe = (uv_pipe_t*) stream;
  int result = 0;
  while (talk.form == AS_IPC && uv_pipe_pending_count(pipe) > 0) {
    uv_handle_type type = uv_pipe_pending_type(pipe);
    talk.open++;
    if (type == UV_TCP) result = uv_tcp_init(&loop, &talk.taken.tcp);
    else if (type == UV_UDP) result = uv_udp_init(&loop, &talk.taken.udp);
    else result = uv_pipe_init(&loop, &talk.taken.pipe, 0);
    if (result == 0) result = uv_accept(stream, &talk.taken.stream);
    say("conversation %d takes %s: %s, left %d", talk.number, uv_handle_type_name(type), name(result), uv_pipe_pending_count(pipe));
    gone(&talk.taken);
  }
}

static void on_read_answers(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf);
static void on_read_asks(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf);

static void reply(uv_stream_t* stream) {
  uv_buf_t buf = uv_buf_init(data, (unsigned) talk.answer);
  int result;
  if (talk.resets && talk.form == AS_TCP) {
    say("conversation %d reset: %s", talk.number, name(uv_tcp_close_reset((uv_tcp_t*) stream, on_gone)));
    return;
  }
  result = uv_write(&talk.reply, stream, &buf, 1, on_write);
  say("conversation %d reply: %s", talk.number, name(result));
  result = uv_shutdown(&talk.shutdowns[1], stream, on_shutdown);
  say("conversation %d shutdown B: %s", talk.number, name(result));
}

static void on_read_answers(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  (void) buf;
  if (nread > 0) {
    talk.asked += nread;
    take(stream);
    if (talk.pauses) {
      talk.pauses = 0;
      uv_read_stop(stream);
      uv_read_start(stream, on_room, on_read_answers);
    }
  } else if (nread == UV_ENOBUFS) {
    say("conversation %d B starves", talk.number);
  } else if (nread < 0) {
    say("conversation %d B ends: %s", talk.number, name((int) nread));
    say("conversation %d B: readable %d writable %d active %d", talk.number, uv_is_readable(stream), uv_is_writable(stream),
        uv_is_active((uv_handle_t*) stream));
    uv_read_stop(stream);
    reply(stream);
  }
}
static void on_read_asks(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  (void) buf;
  if (nread > 0) talk.answered += nread;
  if (nread >= 0 || nread == UV_ENOBUFS) return;
  say("conversation %d A ends: %s", talk.number, name((int) nread));
  gone(stream);
  gone(&talk.answers);
  if (talk.form == AS_TCP) gone(&talk.listener);
  if (talk.sends) gone(&talk.sent);
}

static void ask(void) {
  uv_stream_t* stream = &talk.asks.stream;
  for (int i = 0; i < talk.count; i++) {
    uv_buf_t bufs[2] = {uv_buf_init(data, (unsigned) talk.sizes[i] / 2), uv_buf_init(data, (unsigned) (talk.sizes[i] - talk.sizes[i] / 2))};
    int result = i == 0 && talk.sends ? uv_write2(&talk.writes[i], stream, bufs, 2, &talk.sent.stream, on_write)
                                      : uv_write(&talk.writes[i], stream, bufs, 2, on_write);
    say("conversation %d write %d of %d: %s", talk.number, i, talk.sizes[i], name(result));
  }
  say("conversation %d shutdown A: %s", talk.number, name(uv_shutdown(&talk.shutdowns[0], stream, on_shutdown)));
  say("conversation %d again: %s", talk.number, name(uv_shutdown(&(uv_shutdown_t){0}, stream, on_shutdown)));
  say("conversation %d write after: %s", talk.number, name(uv_try_write(stream, &(uv_buf_t){.base = data, .len = 1}, 1)));
  say("conversation %d read A: %s", talk.number, name(uv_read_start(stream, on_room, on_read_asks)));
}

static void on_connection(uv_stream_t* listener, int status) {
  say("conversation %d connection: %s", talk.number, name(status));
  say("conversation %d accept: %s", talk.number, name(uv_accept(listener, &talk.answers.stream)));
  say("conversation %d read B: %s", talk.number, name(uv_read_start(&talk.answers.stream, on_room, on_read_answers)));
}
static void on_connect(uv_connect_t* req, int status) {
  (void) req;
  say("conversation %d connect: %s", talk.number, name(status));
  ask();
}

static void connect_tcp(void) {
  struct sockaddr_storage at;
  int size = sizeof at, result;
  memset(&at, 0, sizeof at);
  if (below(3)) uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in*) &at);
  else uv_ip6_addr("::1", 0, (struct sockaddr_in6*) &at);
  uv_tcp_init(&loop, &talk.listener.tcp);
  uv_tcp_init(&loop, &talk.asks.tcp);
  uv_tcp_init(&loop, &talk.answers.tcp);
  talk.open = 3;
  if (uv_tcp_bind(&talk.listener.tcp, (struct sockaddr*) &at, 0) != 0) abort();
  say("  listen: %s", name(uv_listen(&talk.listener.stream, 5, on_connection)));
  uv_tcp_getsockname(&talk.listener.tcp, (struct sockaddr*) &at, &size);
  result = uv_tcp_connect(&talk.connect, &talk.asks.tcp, (struct sockaddr*) &at, on_connect);
  say("  connect: %s", name(result));
  say("  twice: %s", name(uv_tcp_connect(&(uv_connect_t){0}, &talk.asks.tcp, (struct sockaddr*) &at, on_connect)));
}

/* What is sent along: a handle that has a descriptor. */
static void make_sent(void) {
  struct sockaddr_in at;
  uv_ip4_addr("127.0.0.1", 0, &at);
  talk.open++;
  switch (talk.sends) {
    case 1: uv_tcp_init(&loop, &talk.sent.tcp); uv_tcp_bind(&talk.sent.tcp, (struct sockaddr*) &at, 0); break;
    case 2: uv_udp_init(&loop, &talk.sent.udp); uv_udp_bind(&talk.sent.udp, (struct sockaddr*) &at, 0); break;
    case 3: uv_pipe_init(&loop, &talk.sent.pipe, 0); uv_pipe_bind2(&talk.sent.pipe, "\0differ", 7, 0); break;
  }
}

static void connect_pipes(void) {
  int pair[2], ipc = talk.form == AS_IPC;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
  uv_pipe_init(&loop, &talk.asks.pipe, ipc);
  uv_pipe_init(&loop, &talk.answers.pipe, ipc);
  talk.open = 2;
  say("  open: %s %s", name(uv_pipe_open(&talk.asks.pipe, pair[0])), name(uv_pipe_open(&talk.answers.pipe, pair[1])));
  say("  own: %s", name(uv_pipe_open(&talk.asks.pipe, pair[0])));
  if (ipc && talk.sends) make_sent();
  say("  read B: %s", name(uv_read_start(&talk.answers.stream, on_room, on_read_answers)));
  say("  again: %s", name(uv_read_start(&talk.answers.stream, on_room, on_read_answers)));
  ask();
}

int conversation_op(void) {
  memset(&talk, 0, sizeof talk);
  talk.number = ++requests;
  talk.form = (int) below(FORMS);
  talk.count = (int) below(WRITES + 1);
  for (int i = 0; i < talk.count; i++) talk.sizes[i] = (int) (below(2) ? below(100) : below(LARGE));
  talk.answer = (int) (below(2) ? below(100) : below(LARGE));
  talk.room = (int[]){1000, 4096, sizeof room}[below(3)];
  talk.starve = below(4) ? 0 : 1 + (int) below(3);
  talk.pauses = (int) below(2);
  talk.resets = below(4) == 0;
  talk.sends = talk.form == AS_IPC && talk.count > 0 && talk.sizes[0] > 0 ? (int) below(4) : 0;
  say("conversation %d form %d", talk.number, talk.form);
  awaited++;
  if (talk.form == AS_TCP) connect_tcp();
  else connect_pipes();
  return 1;
}
