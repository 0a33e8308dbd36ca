/* The pool of threads and wake-ups from threads: work, cancellation, look-ups, random bytes. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

enum { MOST = 6, THREADS = 4 };

static void on_freed(uv_handle_t* handle) {
  awaited--;
  free(handle);
}

struct job {
  union uv_any_req any; /* First, so that a request's address is its job's. */
  int number, kind, done;
  char bytes[16];
};

static void over(void* req, int status) {
  struct job* job = req;
  say("job %d kind %d: %s done %d", job->number, job->kind, name(status), job->done);
  awaited--;
  free(job);
}
static void work(uv_work_t* req) { ((struct job*) req)->done++; }
static void after_work(uv_work_t* req, int status) { over(req, status); }
static void on_fs(uv_fs_t* req) {
  int result = (int) req->result;
  uv_fs_req_cleanup(req);
  over(req, result);
}
static void on_addrinfo(uv_getaddrinfo_t* req, int status, struct addrinfo* found) {
  struct job* job = (struct job*) req;
  for (struct addrinfo* at = found; at != NULL; at = at->ai_next) job->done++;
  uv_freeaddrinfo(found);
  over(req, status);
}
static void on_nameinfo(uv_getnameinfo_t* req, int status, const char* host, const char* service) {
  if (status == 0) say("job %d: %s %s", ((struct job*) req)->number, host, service);
  over(req, status);
}
static void on_random(uv_random_t* req, int status, void* buf, size_t size) {
  ((struct job*) req)->done = buf == ((struct job*) req)->bytes ? (int) size : -1;
  over(req, status);
}

/* A job of a random kind, submitted; NULL if it was refused. */
static struct job* submit(void) {
  static int jobs;
  struct job* job = calloc(1, sizeof *job);
  struct sockaddr_in in;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
  int result = 0;
  unsigned flags;
  job->number = ++jobs;
  job->kind = below(5);
  uv_ip4_addr("127.0.0.1", 80, &in);
  switch (job->kind) {
    case 0: result = uv_queue_work(&loop, &job->any.work, below(10) ? work : NULL, after_work); break;
    case 1: result = uv_fs_stat(&loop, &job->any.fs, below(2) ? "." : "missing", on_fs); break;
    case 2:
      result = uv_getaddrinfo(&loop, &job->any.getaddrinfo, on_addrinfo,
                              (const char*[]){"127.0.0.1", "::1", "1.2.3", "nonsense", NULL}[below(5)],
                              below(2) ? "80" : NULL, &hints);
      break;
    case 3:
      result = uv_getnameinfo(&loop, &job->any.getnameinfo, on_nameinfo, (struct sockaddr*) &in,
                              NI_NUMERICHOST | NI_NUMERICSERV);
      break;
    case 4:
      flags = below(8) == 0;
      result = uv_random(&loop, (uv_random_t*) &job->any, job->bytes, below(sizeof job->bytes), flags, on_random);
      break;
  }
  say("job %d kind %d: %s", job->number, job->kind, name(result));
  if (result != 0) {
    free(job);
    return NULL;
  }
  awaited++;
  return job;
}

static uv_sem_t begun, released;
static void block(uv_work_t* req) {
  (void) req;
  uv_sem_post(&begun);
  uv_sem_wait(&released);
}
static void after_block(uv_work_t* req, int status) {
  say("blocker %s", name(status));
  awaited--;
  free(req);
}

/* Cancels jobs that cannot have begun, for all threads of the pool are held up. */
static void cancels(void) {
  struct job* jobs[MOST];
  unsigned count = 1 + below(MOST);
  uv_work_t* blockers[THREADS];
  uv_sem_init(&begun, 0);
  uv_sem_init(&released, 0);
  for (int i = 0; i < THREADS; i++) {
    blockers[i] = calloc(1, sizeof(uv_work_t));
    if (uv_queue_work(&loop, blockers[i], block, after_block) != 0) abort();
    awaited++;
  }
  for (int i = 0; i < THREADS; i++) uv_sem_wait(&begun);
  for (unsigned i = 0; i < count; i++) jobs[i] = submit();
  for (unsigned i = 0; i < count; i++)
    if (jobs[i] != NULL && below(3)) {
      say("cancel %d: %s", jobs[i]->number, name(uv_cancel((uv_req_t*) jobs[i])));
    }
  say("cancel blocker: %s", name(uv_cancel((uv_req_t*) blockers[below(THREADS)])));
  for (int i = 0; i < THREADS; i++) uv_sem_post(&released);
}

static void cancel_others(void) {
  static const uv_req_type types[] = {UV_CONNECT, UV_SHUTDOWN, UV_UDP_SEND, UV_REQ, UV_UNKNOWN_REQ};
  union uv_any_req req;
  memset(&req, 0, sizeof req);
  req.req.type = types[below(5)];
  say("cancel type %d: %s", req.req.type, name(uv_cancel(&req.req)));
}

/* Writes that nobody reads: the first is half-way through, the others have not begun. */
struct stuck {
  uv_pipe_t pipe;
  uv_write_t writes[3];
  int number, other;
};
static char much[4 << 20];

static void on_stuck_gone(uv_handle_t* handle) {
  struct stuck* stuck = (struct stuck*) handle;
  close(stuck->other);
  awaited--;
  free(stuck);
}
static void on_stuck(uv_write_t* req, int status) {
  struct stuck* stuck = (struct stuck*) req->handle;
  long i = req - stuck->writes;
  say("stuck %d write %ld: %s, begun %d", stuck->number, i, name(status), uv_write_nwritten(req) > 0);
}

static void cancel_writes(void) {
  struct stuck* stuck = calloc(1, sizeof *stuck);
  uv_buf_t buf = uv_buf_init(much, sizeof much);
  int pair[2], result;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
  stuck->number = ++requests;
  stuck->other = pair[1];
  uv_pipe_init(&loop, &stuck->pipe, 0);
  uv_pipe_open(&stuck->pipe, pair[0]);
  for (int i = 0; i < 3; i++) {
    uv_write(&stuck->writes[i], (uv_stream_t*) &stuck->pipe, &buf, 1, on_stuck);
    buf.len = 1 + below(100);
  }
  for (int count = (int) below(4); count > 0; count--) {
    int i = (int) below(3);
    result = uv_cancel((uv_req_t*) &stuck->writes[i]);
    say("stuck %d cancel %d: %s", stuck->number, i, name(result));
  }
  uv_close((uv_handle_t*) &stuck->pipe, on_stuck_gone);
  awaited++;
}

/* Senders wake a handle: it is called at least once after the last of them. */
struct woken {
  uv_async_t async;
  int calls, senders, sent;
};
static void on_woken(uv_async_t* async) {
  struct woken* woken = (struct woken*) async;
  woken->calls++;
  if (__atomic_load_n(&woken->sent, __ATOMIC_SEQ_CST) < woken->senders) return;
  if (uv_is_closing((uv_handle_t*) async)) return;
  say("async: all sends seen, %d", woken->calls > 0);
  uv_close((uv_handle_t*) async, on_freed);
}
static void send_many(void* arg) {
  struct woken* woken = arg;
  for (int i = 0; i < 50; i++) uv_async_send(&woken->async);
  __atomic_add_fetch(&woken->sent, 1, __ATOMIC_SEQ_CST);
  uv_async_send(&woken->async);
}

static void sends(void) {
  struct woken* woken = calloc(1, sizeof *woken);
  uv_thread_t threads[3];
  woken->senders = 1 + below(3);
  say("async with %d senders: %s", woken->senders, name(uv_async_init(&loop, &woken->async, on_woken)));
  awaited++;
  for (int i = 0; i < woken->senders; i++) if (uv_thread_create(&threads[i], send_many, woken) != 0) abort();
  for (int i = 0; i < woken->senders; i++) uv_thread_join(&threads[i]);
}

/* The same jobs without the loop. */
static void at_once(void) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = below(2) ? AI_NUMERICHOST : 0};
  const char* host = (const char*[]){"127.0.0.1", "::1", "1.2.3", "localhost", "127.0.0.1.", "xn--a", NULL}[below(hints.ai_flags ? 7 : 4)];
  const char* service = (const char*[]){"80", "nonsense", NULL}[below(3)];
  uv_getaddrinfo_t look;
  uv_getnameinfo_t called;
  struct sockaddr_storage to;
  int result = uv_getaddrinfo(&loop, &look, NULL, host, service, &hints), count = 0;
  char room[8] = "";
  say("getaddrinfo %s %s: %s", host ? host : "-", service ? service : "-", name(result));
  if (result == 0) {
    for (struct addrinfo* at = look.addrinfo; at != NULL; at = at->ai_next) count++;
    say("  found %d family %d", count, look.addrinfo->ai_family);
    uv_freeaddrinfo(look.addrinfo);
  }
  memset(&to, 0, sizeof to);
  switch (below(3)) {
    case 0: uv_ip4_addr("127.0.0.1", 80, (struct sockaddr_in*) &to); break;
    case 1: uv_ip6_addr("::1", 80, (struct sockaddr_in6*) &to); break;
  }
  result = uv_getnameinfo(&loop, &called, NULL, (struct sockaddr*) &to, NI_NUMERICHOST | NI_NUMERICSERV);
  say("getnameinfo: %s", name(result));
  if (result == 0) say("  %s %s", called.host, called.service);
  say("random: %s %s", name(uv_random(NULL, NULL, room, sizeof room, 0, NULL)), name(uv_random(NULL, NULL, room, 1, 7, NULL)));
  say("without: %s %s %s", name(uv_getaddrinfo(&loop, NULL, NULL, "::1", NULL, NULL)),
      name(uv_getaddrinfo(&loop, &look, NULL, NULL, NULL, NULL)),
      name(uv_getnameinfo(&loop, NULL, NULL, (struct sockaddr*) &to, 0)));
}

int work_op(void) {
  switch (below(8)) {
    case 0: case 1: cancels(); return 1;
    case 2: sends(); return 1;
    case 3: at_once(); return 0;
    case 4: if (below(2)) cancel_others(); else { cancel_writes(); return 1; } return 0;
    default:
      for (unsigned count = 1 + below(MOST); count > 0; count--) submit();
      return 1;
  }
}
