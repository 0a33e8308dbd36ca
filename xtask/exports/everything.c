/*
 * A program that does a little of everything, and says how much in one line of
 * JSON at its end: `everything wait` for a trace of known contents, whose loops
 * stay open until SIGTERM, `everything stall` for callbacks that block their
 * loop, `everything flood` for events without end, `everything loops` for loops
 * that are there for a moment.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define TICKS 20
#define ROUNDS 15
#define WORKS 12
#define CANCELLED 3
#define FILES 9
#define LOOKUPS 4
#define NAMES 3
#define RANDOMS 2
#define WORKER_WORKS 6

static int ticks, rounds, works, cancelled, files, lookups, names, randoms;
static int worker_works, nested, nested_runs, waked;
static uv_loop_t* loop;
static uv_timer_t ticker;
static uv_async_t async;
static uv_tcp_t server, client, peer;
static uv_connect_t connecting;
static uv_write_t asking, answering;
static uv_work_t work[WORKS], blocked[4], doomed[CANCELLED];
static uv_work_t worker_work[WORKER_WORKS];
static uv_fs_t file[FILES];
static uv_getaddrinfo_t lookup[LOOKUPS];
static uv_getnameinfo_t name[NAMES];
static uv_random_t chance[RANDOMS];
static uv_sem_t gate;
static uv_barrier_t all_threads;
/* The loops stay open until SIGTERM, once all else is done. */
static uv_signal_t end;
static uv_async_t release;
static char room[64], client_room[64], bytes[RANDOMS][16];

static unsigned long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ULL + at.tv_nsec;
}

static void spin(unsigned ms) {
  unsigned long long end = now() + ms * 1000000ULL;
  while (now() < end) {
  }
}

/* The callbacks that are counted are over. */
static void on_done(uv_handle_t* handle) {
  (void) handle;
  puts("done");
  CHECK(fflush(stdout) == 0);
}

/* Closes what is left once all has been done. */
static void close_when_done(void) {
  if (ticks == TICKS && rounds == ROUNDS && works == WORKS + 4 &&
      cancelled == CANCELLED && files == FILES && lookups == LOOKUPS &&
      names == NAMES && randoms == RANDOMS && waked) {
    uv_close((uv_handle_t*) &async, NULL);
    uv_close((uv_handle_t*) &server, NULL);
    uv_close((uv_handle_t*) &client, NULL);
    uv_close((uv_handle_t*) &peer, NULL);
    uv_close((uv_handle_t*) &ticker, on_done);
  }
}

static void on_end(uv_signal_t* handle, int number) {
  (void) number;
  CHECK(uv_async_send(&release) == 0);
  uv_close((uv_handle_t*) handle, NULL);
}

static void on_release(uv_async_t* handle) {
  uv_close((uv_handle_t*) handle, NULL);
}

static void on_nested_close(uv_handle_t* timer) {
  *(int*) timer->data = 1;
}

static void on_nested(uv_timer_t* timer) {
  nested++;
  uv_close((uv_handle_t*) timer, on_nested_close);
}

static void on_tick(uv_timer_t* timer) {
  ticks++;
  if (ticks % 5 == 0) {
    /* The loop runs inside of its own callback, as npm's deasync does. */
    uv_timer_t inner;
    int closed = 0;
    inner.data = &closed;
    CHECK(uv_timer_init(loop, &inner) == 0);
    CHECK(uv_timer_start(&inner, on_nested, 0, 0) == 0);
    while (!closed) {
      uv_run(loop, UV_RUN_ONCE);
      nested_runs++;
    }
  }
  if (ticks == TICKS)
    uv_timer_stop(timer);
  close_when_done();
}

static void on_async(uv_async_t* handle) {
  (void) handle;
  waked = 1;
  close_when_done();
}

static void do_work(uv_work_t* req) {
  (void) req;
  spin(1);
}

static void do_wait(uv_work_t* req) {
  (void) req;
  uv_sem_wait(&gate);
  /* Each thread of the pool runs one of these, however late it comes. */
  if (uv_barrier_wait(&all_threads) > 0)
    uv_barrier_destroy(&all_threads);
}

static void on_worked(uv_work_t* req, int status) {
  (void) req;
  CHECK(status == 0);
  works++;
  close_when_done();
}

static void on_cancelled(uv_work_t* req, int status) {
  (void) req;
  CHECK(status == UV_ECANCELED);
  cancelled++;
  close_when_done();
}

static void on_stat(uv_fs_t* req) {
  CHECK(req->result == 0);
  uv_fs_req_cleanup(req);
  files++;
  close_when_done();
}

static void on_lookup(uv_getaddrinfo_t* req, int status,
                      struct addrinfo* found) {
  (void) req;
  CHECK(status == 0);
  uv_freeaddrinfo(found);
  lookups++;
  close_when_done();
}

static void on_name(uv_getnameinfo_t* req, int status, const char* host,
                    const char* service) {
  (void) req;
  (void) host;
  (void) service;
  CHECK(status == 0);
  names++;
  close_when_done();
}

static void on_random(uv_random_t* req, int status, void* buf, size_t size) {
  (void) req;
  (void) buf;
  (void) size;
  CHECK(status == 0);
  randoms++;
  close_when_done();
}

static void on_room(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) size;
  char* own = handle == (uv_handle_t*) &client ? client_room : room;
  *buf = uv_buf_init(own, sizeof(room));
}

static void on_written(uv_write_t* req, int status) {
  (void) req;
  CHECK(status == 0);
}

static void ask(void) {
  uv_buf_t buf = uv_buf_init("?", 1);
  CHECK(uv_write(&asking, (uv_stream_t*) &client, &buf, 1, on_written) == 0);
}

static void on_question(uv_stream_t* stream, ssize_t count,
                        const uv_buf_t* buf) {
  (void) buf;
  if (count != 1)
    return;
  uv_buf_t answer = uv_buf_init("!", 1);
  CHECK(uv_write(&answering, stream, &answer, 1, on_written) == 0);
}

static void on_answer(uv_stream_t* stream, ssize_t count,
                      const uv_buf_t* buf) {
  (void) buf;
  (void) stream;
  if (count != 1)
    return;
  if (++rounds < ROUNDS)
    ask();
  close_when_done();
}

static void on_connection(uv_stream_t* stream, int status) {
  CHECK(status == 0);
  CHECK(uv_tcp_init(loop, &peer) == 0);
  CHECK(uv_accept(stream, (uv_stream_t*) &peer) == 0);
  CHECK(uv_read_start((uv_stream_t*) &peer, on_room, on_question) == 0);
}

static void on_connected(uv_connect_t* req, int status) {
  (void) req;
  CHECK(status == 0);
  CHECK(uv_read_start((uv_stream_t*) &client, on_room, on_answer) == 0);
  ask();
}

/* A loop of its own in another thread, which uses the same pool. */
static void on_worker_worked(uv_work_t* req, int status) {
  CHECK(status == 0);
  if (++worker_works < WORKER_WORKS) {
    CHECK(uv_queue_work(req->loop, &worker_work[worker_works], do_work,
                        on_worker_worked) == 0);
  } else {
    CHECK(uv_async_send(&async) == 0);
  }
}

static void run_worker(void* arg) {
  uv_loop_t own;
  (void) arg;
  CHECK(uv_loop_init(&own) == 0);
  CHECK(uv_async_init(&own, &release, on_release) == 0);
  CHECK(uv_queue_work(&own, &worker_work[0], do_work, on_worker_worked) == 0);
  CHECK(uv_run(&own, UV_RUN_DEFAULT) == 0);
  CHECK(uv_loop_close(&own) == 0);
}

static void do_everything(void) {
  struct sockaddr_in any, address;
  int size = sizeof(address);
  uv_thread_t thread;
  CHECK(uv_timer_init(loop, &ticker) == 0);
  CHECK(uv_timer_start(&ticker, on_tick, 1, 2) == 0);
  CHECK(uv_async_init(loop, &async, on_async) == 0);
  CHECK(uv_signal_init(loop, &end) == 0);
  CHECK(uv_signal_start(&end, on_end, SIGTERM) == 0);
  CHECK(uv_ip4_addr("127.0.0.1", 0, &any) == 0);
  CHECK(uv_tcp_init(loop, &server) == 0);
  CHECK(uv_tcp_bind(&server, (struct sockaddr*) &any, 0) == 0);
  CHECK(uv_listen((uv_stream_t*) &server, 8, on_connection) == 0);
  CHECK(uv_tcp_getsockname(&server, (struct sockaddr*) &address, &size) == 0);
  CHECK(uv_tcp_init(loop, &client) == 0);
  CHECK(uv_tcp_connect(&connecting, &client, (struct sockaddr*) &address,
                       on_connected) == 0);
  /* The whole pool is blocked, so that what comes next can be cancelled. */
  CHECK(uv_sem_init(&gate, 0) == 0);
  CHECK(uv_barrier_init(&all_threads, 4) == 0);
  for (int at = 0; at < 4; at++)
    CHECK(uv_queue_work(loop, &blocked[at], do_wait, on_worked) == 0);
  for (int at = 0; at < CANCELLED; at++)
    CHECK(uv_queue_work(loop, &doomed[at], do_work, on_cancelled) == 0);
  for (int at = 0; at < CANCELLED; at++)
    CHECK(uv_cancel((uv_req_t*) &doomed[at]) == 0);
  for (int at = 0; at < WORKS; at++)
    CHECK(uv_queue_work(loop, &work[at], do_work, on_worked) == 0);
  for (int at = 0; at < FILES; at++)
    CHECK(uv_fs_stat(loop, &file[at], "/", on_stat) == 0);
  struct addrinfo hints;
  memset(&hints, 0, sizeof(hints));
  hints.ai_flags = AI_NUMERICHOST;
  for (int at = 0; at < LOOKUPS; at++)
    CHECK(uv_getaddrinfo(loop, &lookup[at], on_lookup, "127.0.0.1", NULL,
                         &hints) == 0);
  for (int at = 0; at < NAMES; at++)
    CHECK(uv_getnameinfo(loop, &name[at], on_name, (struct sockaddr*) &address,
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0);
  for (int at = 0; at < RANDOMS; at++)
    CHECK(uv_random(loop, &chance[at], bytes[at], sizeof(bytes[at]), 0,
                    on_random) == 0);
  for (int at = 0; at < 4; at++)
    uv_sem_post(&gate);
  CHECK(uv_thread_create(&thread, run_worker, NULL) == 0);
  CHECK(uv_run(loop, UV_RUN_DEFAULT) == 0);
  CHECK(uv_thread_join(&thread) == 0);
}

/* Callbacks without a pause, counted in lines on the standard output. */
static void on_idle(uv_idle_t* idle) {
  static unsigned long long count;
  (void) idle;
  if (++count % 20000 == 0) {
    printf("%llu\n", count);
    CHECK(fflush(stdout) == 0);
  }
}

static void flood(void) {
  uv_idle_t idle;
  CHECK(uv_idle_init(loop, &idle) == 0);
  CHECK(uv_idle_start(&idle, on_idle) == 0);
  uv_run(loop, UV_RUN_DEFAULT);
}

/* A callback that computes, and one that waits for a pipe. */
__attribute__((noinline)) static void crunch(unsigned ms) {
  spin(ms);
  __asm__ volatile("");
}

static void on_crunch(uv_timer_t* timer) {
  puts("computing");
  CHECK(fflush(stdout) == 0);
  crunch(2000);
  uv_close((uv_handle_t*) timer, NULL);
}

static int pipe_ends[2];

static void feed(void* arg) {
  (void) arg;
  sleep(2);
  CHECK(write(pipe_ends[1], "x", 1) == 1);
}

static void on_wait(uv_timer_t* timer) {
  char byte;
  uv_thread_t thread;
  CHECK(uv_thread_create(&thread, feed, NULL) == 0);
  CHECK(read(pipe_ends[0], &byte, 1) == 1);
  CHECK(uv_thread_join(&thread) == 0);
  uv_close((uv_handle_t*) timer, NULL);
}

static void stall(void) {
  uv_timer_t computing, waiting;
  CHECK(pipe(pipe_ends) == 0);
  CHECK(uv_timer_init(loop, &computing) == 0);
  CHECK(uv_timer_start(&computing, on_crunch, 100, 0) == 0);
  CHECK(uv_timer_init(loop, &waiting) == 0);
  CHECK(uv_timer_start(&waiting, on_wait, 700, 0) == 0);
  CHECK(uv_run(loop, UV_RUN_DEFAULT) == 0);
}

static void on_stop(uv_signal_t* handle, int number) {
  (void) number;
  uv_close((uv_handle_t*) handle, NULL);
}

/* Loops that are opened, run and closed faster than anybody can look, and one
 * that stays until SIGTERM. */
static void run_loops(void) {
  uv_loop_t own;
  for (int at = 0; at < 300; at++) {
    uv_timer_t timer;
    CHECK(uv_loop_init(&own) == 0);
    CHECK(uv_timer_init(&own, &timer) == 0);
    uv_close((uv_handle_t*) &timer, NULL);
    CHECK(uv_run(&own, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&own) == 0);
  }
  CHECK(uv_loop_init(&own) == 0);
  CHECK(uv_signal_init(loop, &end) == 0);
  CHECK(uv_signal_start(&end, on_stop, SIGTERM) == 0);
  puts("done");
  CHECK(fflush(stdout) == 0);
  CHECK(uv_run(loop, UV_RUN_DEFAULT) == 0);
  CHECK(uv_loop_close(&own) == 0);
}

int main(int argc, char** argv) {
  unsigned long long begin = now();
  const char* what = argc > 1 ? argv[1] : "";
  loop = uv_default_loop();
  CHECK(loop != NULL);
  if (strcmp(what, "flood") == 0) {
    flood();
  } else if (strcmp(what, "stall") == 0) {
    stall();
  } else if (strcmp(what, "loops") == 0) {
    run_loops();
  } else {
    CHECK(strcmp(what, "wait") == 0);
    do_everything();
  }
  printf("{\"begin\": %llu, \"end\": %llu, \"callbacks\": {\"on_tick\": %d, "
         "\"on_nested\": %d, \"on_async\": 1, \"on_worked\": %d, "
         "\"on_cancelled\": %d, \"on_stat\": %d, \"on_lookup\": %d, "
         "\"on_name\": %d, \"on_random\": %d, \"on_answer\": %d, "
         "\"on_question\": %d, \"on_connected\": 1, \"on_connection\": 1, "
         "\"on_worker_worked\": %d}, ",
         begin, now(), ticks, nested, works, cancelled, files, lookups, names,
         randoms, rounds, rounds, worker_works);
  printf("\"jobs\": {\"work\": %d, \"fs\": %d, \"getaddrinfo\": %d, "
         "\"getnameinfo\": %d, \"random\": %d}, \"cancelled\": %d, "
         "\"loops\": 2, \"nested_runs\": %d}\n",
         works + worker_works, files, lookups, names, randoms, cancelled,
         nested_runs);
  CHECK(uv_loop_close(loop) == 0);
  return 0;
}
