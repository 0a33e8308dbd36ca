/* Threads and what they share: locks, semaphores, conditions, barriers, keys. Every answer is asked for
 * when the state is known: what another thread holds, it has taken before the question. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "differ.h"

enum { MOST = 4 };

/* Runs `entry` on another thread, and waits for it. */
static void elsewhere(uv_thread_cb entry, void* arg) {
  uv_thread_t thread;
  if (uv_thread_create(&thread, entry, arg) != 0 || uv_thread_join(&thread) != 0) abort();
}

static struct {
  uv_mutex_t mutex;
  uv_rwlock_t lock;
  int answers[2];
} locks;

static void try_mutex(void* arg) {
  (void) arg;
  locks.answers[0] = uv_mutex_trylock(&locks.mutex);
  if (locks.answers[0] == 0) uv_mutex_unlock(&locks.mutex);
}

static void mutexes(void) {
  int recursive = below(2), depth = recursive ? 1 + (int) below(3) : 1;
  int result = recursive ? uv_mutex_init_recursive(&locks.mutex) : uv_mutex_init(&locks.mutex);
  say("mutex recursive %d: %s", recursive, name(result));
  for (int i = 0; i < depth; i++) {
    if (below(2)) say("  trylock: %s", name(uv_mutex_trylock(&locks.mutex)));
    else uv_mutex_lock(&locks.mutex);
  }
  if (!recursive) say("  trylock again: %s", name(uv_mutex_trylock(&locks.mutex)));
  for (int i = depth; i >= 0; i--) {
    elsewhere(try_mutex, NULL);
    say("  held %d times, elsewhere: %s", i, name(locks.answers[0]));
    if (i > 0) uv_mutex_unlock(&locks.mutex);
  }
  uv_mutex_destroy(&locks.mutex);
}

static void try_lock(void* arg) {
  (void) arg;
  locks.answers[0] = uv_rwlock_tryrdlock(&locks.lock);
  if (locks.answers[0] == 0) uv_rwlock_rdunlock(&locks.lock);
  locks.answers[1] = uv_rwlock_trywrlock(&locks.lock);
  if (locks.answers[1] == 0) uv_rwlock_wrunlock(&locks.lock);
}

static void rwlocks(void) {
  int how = below(4);
  say("rwlock: %s", name(uv_rwlock_init(&locks.lock)));
  switch (how) {
    case 0: uv_rwlock_rdlock(&locks.lock); break;
    case 1: uv_rwlock_wrlock(&locks.lock); break;
    case 2: say("  tryrdlock: %s", name(uv_rwlock_tryrdlock(&locks.lock))); break;
    case 3: say("  trywrlock: %s", name(uv_rwlock_trywrlock(&locks.lock))); break;
  }
  elsewhere(try_lock, NULL);
  say("  held %d, elsewhere: %s %s", how % 2, name(locks.answers[0]), name(locks.answers[1]));
  if (how % 2) uv_rwlock_wrunlock(&locks.lock);
  else uv_rwlock_rdunlock(&locks.lock);
  elsewhere(try_lock, NULL);
  say("  free, elsewhere: %s %s", name(locks.answers[0]), name(locks.answers[1]));
  uv_rwlock_destroy(&locks.lock);
}

static uv_sem_t sem;
static void post(void* arg) { for (long i = 0; i < (long) arg; i++) uv_sem_post(&sem); }

static void semaphores(void) {
  unsigned value = below(4), more = below(3), taken = 0;
  say("sem %u: %s", value, name(uv_sem_init(&sem, value)));
  elsewhere(post, (void*) (long) more);
  if (value + more > 0 && below(2)) { uv_sem_wait(&sem); taken++; }
  for (unsigned i = taken; i < value + more + 2; i++) say("  trywait: %s", name(uv_sem_trywait(&sem)));
  uv_sem_destroy(&sem);
}

static struct {
  uv_mutex_t mutex;
  uv_cond_t cond;
  int waiting, woken, go;
} meeting;

static void wait_for_go(void* arg) {
  (void) arg;
  uv_mutex_lock(&meeting.mutex);
  meeting.waiting++;
  while (!meeting.go) uv_cond_wait(&meeting.cond, &meeting.mutex);
  meeting.woken++;
  uv_mutex_unlock(&meeting.mutex);
}

static void conditions(void) {
  uv_thread_t threads[MOST];
  int count = below(MOST + 1), waiting = 0;
  memset(&meeting, 0, sizeof meeting);
  say("cond: %s %s", name(uv_mutex_init(&meeting.mutex)), name(uv_cond_init(&meeting.cond)));
  uv_mutex_lock(&meeting.mutex);
  say("  timedwait: %s", name(uv_cond_timedwait(&meeting.cond, &meeting.mutex, below(2) * 1000)));
  uv_cond_signal(&meeting.cond); /* Nobody waits: it is not remembered. */
  say("  timedwait: %s", name(uv_cond_timedwait(&meeting.cond, &meeting.mutex, 1)));
  uv_mutex_unlock(&meeting.mutex);
  for (int i = 0; i < count; i++) if (uv_thread_create(&threads[i], wait_for_go, NULL) != 0) abort();
  while (waiting < count) { /* Who has the mutex after they have counted themselves knows that they wait. */
    uv_mutex_lock(&meeting.mutex);
    waiting = meeting.waiting;
    uv_mutex_unlock(&meeting.mutex);
  }
  uv_mutex_lock(&meeting.mutex);
  meeting.go = 1;
  if (below(2)) uv_cond_broadcast(&meeting.cond);
  else for (int i = 0; i < count; i++) uv_cond_signal(&meeting.cond);
  uv_mutex_unlock(&meeting.mutex);
  for (int i = 0; i < count; i++) say("  join: %s", name(uv_thread_join(&threads[i])));
  say("  woken %d", meeting.woken);
  uv_cond_destroy(&meeting.cond);
  uv_mutex_destroy(&meeting.mutex);
}

static struct { uv_barrier_t barrier; int serial[2]; } fence;

static void meet(void* arg) {
  (void) arg;
  for (int round = 0; round < 2; round++)
    if (uv_barrier_wait(&fence.barrier) > 0) __atomic_add_fetch(&fence.serial[round], 1, __ATOMIC_SEQ_CST);
}

static void barriers(void) {
  uv_thread_t threads[MOST];
  unsigned count = below(MOST + 1);
  int result = uv_barrier_init(&fence.barrier, count);
  fence.serial[0] = fence.serial[1] = 0;
  say("barrier %u: %s", count, name(result));
  if (result != 0) return;
  for (unsigned i = 1; i < count; i++) if (uv_thread_create(&threads[i], meet, NULL) != 0) abort();
  meet(NULL);
  for (unsigned i = 1; i < count; i++) uv_thread_join(&threads[i]);
  say("  were chosen: %d %d", fence.serial[0], fence.serial[1]);
  uv_barrier_destroy(&fence.barrier);
}

static uv_key_t key;
static uv_once_t once;
static int onces, keys_kept;
static void count_once(void) { onces++; }
static void own_value(void* arg) {
  int fresh = uv_key_get(&key) == NULL;
  uv_once(&once, count_once);
  uv_key_set(&key, arg);
  if (fresh && uv_key_get(&key) == arg) __atomic_add_fetch(&keys_kept, 1, __ATOMIC_SEQ_CST);
}

static void keys(void) {
  static const uv_once_t fresh = UV_ONCE_INIT;
  uv_thread_t threads[MOST];
  int count = below(MOST + 1);
  once = fresh;
  onces = keys_kept = 0;
  say("key: %s %d", name(uv_key_create(&key)), uv_key_get(&key) == NULL);
  uv_key_set(&key, &key);
  for (int i = 0; i < count; i++) if (uv_thread_create(&threads[i], own_value, &threads[i]) != 0) abort();
  for (int i = 0; i < count; i++) uv_thread_join(&threads[i]);
  say("  kept %d once %d own %d", keys_kept, onces, uv_key_get(&key) == &key);
  uv_key_delete(&key);
}

static struct {
  uv_thread_t self;
  size_t stack;
  char called[64];
  int answers[6], priority;
} seen;

static void look(void* arg) {
  const char* called = arg;
  pthread_attr_t attr;
  uv_thread_t self = uv_thread_self();
  memset(&seen, 0, sizeof seen);
  seen.self = self;
  pthread_getattr_np(pthread_self(), &attr);
  pthread_attr_getstacksize(&attr, &seen.stack);
  pthread_attr_destroy(&attr);
  seen.answers[0] = uv_thread_setname(called);
  seen.answers[1] = uv_thread_getname(&self, seen.called, sizeof seen.called);
  seen.answers[2] = uv_thread_getname(&self, seen.called, strlen(seen.called) / 2);
  seen.answers[3] = uv_thread_getname(&self, NULL, 5);
  seen.answers[4] = uv_thread_getpriority(self, &seen.priority);
  seen.answers[5] = uv_thread_getcpu() >= 0;
}

static void threads_made(void) {
  static const char* calls[] = {"short", "one that is far too long", "", "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc"};
  static const size_t sizes[] = {0, 1, 4096, 70000, 1 << 20, (size_t) 1 << 60};
  uv_thread_options_t options = {.flags = below(3) ? UV_THREAD_HAS_STACK_SIZE : UV_THREAD_NO_FLAGS, .stack_size = sizes[below(6)]};
  uv_thread_t thread, self = uv_thread_self();
  int result = uv_thread_create_ex(&thread, &options, look, (void*) calls[below(4)]);
  say("thread stack %d %zu: %s", options.flags, options.stack_size, name(result));
  if (result != 0) return;
  say("  join: %s", name(uv_thread_join(&thread)));
  say("  stack %zu name '%s' %s %s %s %s", seen.stack, seen.called, name(seen.answers[0]), name(seen.answers[1]),
      name(seen.answers[2]), name(seen.answers[3]));
  say("  priority %s %d cpu %d equal %d %d", name(seen.answers[4]), seen.priority, seen.answers[5],
      uv_thread_equal(&seen.self, &thread), uv_thread_equal(&self, &seen.self));
}

static void affinity(void) {
  int size = uv_cpumask_size(), result;
  char mask[CHAR_BIT * 1024], before[sizeof mask];
  uv_thread_t self = uv_thread_self();
  if (size <= 0 || size > (int) sizeof mask) return;
  say("affinity %d small: %s", size, name(uv_thread_getaffinity(&self, mask, (size_t) size - 1)));
  result = uv_thread_getaffinity(&self, mask, (size_t) size);
  say("  get: %s", name(result));
  if (result != 0) return;
  memset(before, 7, sizeof before);
  say("  set: %s", name(uv_thread_setaffinity(&self, mask, before, (size_t) size)));
  say("  same: %d", memcmp(mask, before, (size_t) size) == 0);
  say("  small: %s", name(uv_thread_setaffinity(&self, mask, NULL, (size_t) size - 1)));
}

static void own_loop(void* arg);

int thread_op(void) {
  switch (below(9)) {
    case 0: mutexes(); break;
    case 1: rwlocks(); break;
    case 2: semaphores(); break;
    case 3: conditions(); break;
    case 4: barriers(); break;
    case 5: keys(); break;
    case 6: threads_made(); break;
    case 7: affinity(); break;
    case 8: {
      int answers[8] = {(int) below(3), (int) below(3)};
      elsewhere(own_loop, answers);
      say("loop elsewhere: timers %d closed %d, run %d close %s, run %d close %s", answers[2], answers[3], answers[4],
          name(answers[5]), answers[6], name(answers[7]));
      break;
    }
  }
  return 0;
}

static void count_timer(uv_timer_t* timer) { ((int*) timer->data)[2]++; }
static void count_close(uv_handle_t* handle) { ((int*) handle->data)[3]++; }

/* A loop that lives and dies on another thread. */
static void own_loop(void* arg) {
  int* answers = arg;
  uv_loop_t own;
  uv_timer_t timers[2];
  if (uv_loop_init(&own) != 0) abort();
  for (int i = 0; i < 2; i++) {
    uv_timer_init(&own, &timers[i]);
    timers[i].data = answers;
    if (i < answers[0]) uv_timer_start(&timers[i], count_timer, (unsigned) answers[1], 0);
  }
  answers[4] = uv_run(&own, UV_RUN_DEFAULT);
  answers[5] = uv_loop_close(&own);
  for (int i = 0; i < 2; i++) uv_close((uv_handle_t*) &timers[i], count_close);
  answers[6] = uv_run(&own, UV_RUN_DEFAULT);
  answers[7] = uv_loop_close(&own);
}
