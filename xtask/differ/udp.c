/* Datagrams: UDP among the handles that live from step to step, and between two sockets of which everything
 * is known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

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

void udp_op(struct slot* slot) {
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

/* One socket receives, the other sends: how many arrive is known, and they keep their order. */
static struct {
  uv_udp_t to, from;
  int number, left, room, closing, none;
  char order[100];
} talk;
static char space[20 * 64 * 1024];

static void on_talk_gone(uv_handle_t* handle) {
  (void) handle;
  if (--talk.closing > 0) return;
  say("talk %d received%s", talk.number, talk.order);
  awaited--;
}
static void end_talk(void) {
  talk.closing = 2;
  uv_close((uv_handle_t*) &talk.to, on_talk_gone);
  uv_close((uv_handle_t*) &talk.from, on_talk_gone);
}
static void on_space(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) handle; (void) size;
  *buf = uv_buf_init(space, (unsigned) talk.room);
}
static void on_talk(uv_udp_t* udp, ssize_t nread, const uv_buf_t* buf, const struct sockaddr* from, unsigned flags) {
  size_t at = strlen(talk.order);
  (void) udp;
  if (nread == 0 && from == NULL) return; /* nothing more, or the space is to be freed */
  snprintf(talk.order + at, sizeof talk.order - at, " %s%c%d/%u", nread < 0 ? name((int) nread) : "",
           nread > 0 ? buf->base[0] : '-', nread < 0 ? 0 : (int) nread, flags & UV_UDP_PARTIAL);
  if (nread < 0) uv_udp_recv_stop(udp);
  if (--talk.left == 0 || nread < 0) end_talk();
}
static void on_said(uv_udp_send_t* req, int status) {
  say("talk send %d: %s", (int) (long) req->data, name(status));
  awaited--;
  free(req);
}

static void say_queue(void) {
  say("  queue %zu %zu", uv_udp_get_send_queue_size(&talk.from), uv_udp_get_send_queue_count(&talk.from));
}

/* Sends one datagram in one of three ways; returns how many went. */
static int utter(char mark, const struct sockaddr* to) {
  unsigned size = below(6) ? 1 + below(90) : 0, how = below(4);
  uv_udp_send_t* req;
  uv_buf_t bufs[2];
  uv_buf_t* both[2] = {&bufs[0], &bufs[0]};
  unsigned counts[2] = {1, 1};
  struct sockaddr* addresses[2] = {(struct sockaddr*) to, (struct sockaddr*) to};
  int result;
  memset(bytes, mark, size);
  bufs[0] = uv_buf_init(bytes, size);
  bufs[1] = uv_buf_init("", 0);
  switch (how) {
    case 0:
      result = uv_udp_try_send(&talk.from, bufs, 1 + below(2), to);
      say("  try_send %u: %s %d", size, name(result), result);
      return result >= 0;
    case 1:
      result = uv_udp_try_send2(&talk.from, 2, both, counts, addresses, 0);
      say("  try_send2 %u: %s %d", size, name(result), result);
      return result > 0 ? result : 0;
    default:
      req = request(sizeof *req);
      result = uv_udp_send(req, &talk.from, bufs, 1, to, on_said);
      say("  send %d of %u: %s", requests, size, name(result));
      if (result == 0) awaited++;
      else free(req);
      return result == 0;
  }
}

int datagram_op(void) {
  struct sockaddr_storage at;
  int size = sizeof at, family = below(4) ? AF_INET : AF_INET6, result, connected = below(2);
  unsigned batched = below(3) ? 0 : UV_UDP_RECVMMSG, flags = below(4) ? 0 : (unsigned[]){UV_UDP_REUSEADDR, UV_UDP_IPV6ONLY, UV_UDP_LINUX_RECVERR}[below(3)];
  memset(&talk, 0, sizeof talk);
  talk.number = ++requests;
  talk.room = (int[]){30, 65536, 2 * 65536, sizeof space}[below(4)];
  memset(&at, 0, sizeof at);
  if (family == AF_INET) uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in*) &at);
  else uv_ip6_addr("::1", 0, (struct sockaddr_in6*) &at);
  say("talk init %u: %s", batched, name(uv_udp_init_ex(&loop, &talk.to, AF_UNSPEC | batched)));
  uv_udp_init(&loop, &talk.from);
  result = uv_udp_bind(&talk.to, (struct sockaddr*) &at, flags);
  say("talk %d family %d flags %u room %d batched %d: %s", talk.number, family, flags, talk.room,
      uv_udp_using_recvmmsg(&talk.to), name(result));
  awaited++;
  if (result != 0) {
    end_talk();
    return 1;
  }
  uv_udp_getsockname(&talk.to, (struct sockaddr*) &at, &size);
  if (connected) {
    say("  connect: %s", name(uv_udp_connect(&talk.from, (struct sockaddr*) &at)));
    say("  connect again: %s", name(uv_udp_connect(&talk.from, (struct sockaddr*) &at)));
    say("  send elsewhere: %s", name(uv_udp_try_send(&talk.from, &(uv_buf_t){.base = "e", .len = 1}, 1, (struct sockaddr*) &at)));
  } else {
    say("  send nowhere: %s", name(uv_udp_try_send(&talk.from, &(uv_buf_t){.base = "e", .len = 1}, 1, NULL)));
  }
  say("  recv_start: %s", name(uv_udp_recv_start(&talk.to, on_space, on_talk)));
  say("  again: %s", name(uv_udp_recv_start(&talk.to, on_space, on_talk)));
  for (int count = 1 + (int) below(5), i = 0; i < count; i++) {
    talk.left += utter((char) ('a' + i), connected ? NULL : (struct sockaddr*) &at);
    say_queue();
  }
  if (talk.left == 0) end_talk();
  return 1;
}
