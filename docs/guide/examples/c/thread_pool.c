/* The thread pool: work runs in threads, and the loop tells of its end in the poll phase.
 *
 *   cc thread_pool.c -luv && ./a.out
 *
 * There are four threads. Four jobs wait for each other, which they can only because they run at
 * once; a fifth one waits until a thread is free. Each is told of on the loop's own thread. */
#include "check.h"

#define JOBS 5

static uv_barrier_t four;
static uv_mutex_t mutex;
static uv_thread_t loop_thread;
static int running, most;

static void work(uv_work_t* request) {
  uv_mutex_lock(&mutex);
  if (++running > most)
    most = running;
  uv_mutex_unlock(&mutex);
  if (request->data != NULL)
    uv_barrier_wait(&four);
  uv_mutex_lock(&mutex);
  running--;
  uv_mutex_unlock(&mutex);
}

static void after_work(uv_work_t* request, int status) {
  static int done;
  uv_thread_t self = uv_thread_self();
  (void) request;
  check(status, "work");
  if (!uv_thread_equal(&self, &loop_thread))
    printf("not on the loop's thread\n");
  if (++done == JOBS)
    printf("%d jobs are done; at most %d ran at once\n", done, most);
}

int main(void) {
  uv_loop_t* loop = uv_default_loop();
  uv_work_t requests[JOBS];
  loop_thread = uv_thread_self();
  check(uv_barrier_init(&four, 4), "uv_barrier_init");
  check(uv_mutex_init(&mutex), "uv_mutex_init");
  for (int at = 0; at < JOBS; at++) {
    requests[at].data = at < 4 ? &four : NULL;
    check(uv_queue_work(loop, &requests[at], work, after_work), "uv_queue_work");
  }
  printf("%d jobs are queued, and nothing has waited\n", JOBS);
  uv_run(loop, UV_RUN_DEFAULT);
  return 0;
}
