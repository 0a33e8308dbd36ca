/* Carries the original libuv inside, and says which library its calls get to.
 *
 * With BLACKLIGHT_POLLER=poll our loops have no descriptor to wait for; the original's always have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#ifdef ONE_MORE
void uv_from_the_future(void) {}
#endif
#ifdef NEWER
unsigned uv_version(void) { return 1 << 16 | 54 << 8; }
#endif
#ifdef OTHER_SIZE
size_t uv_loop_size(void) { return sizeof(uv_loop_t) + 8; }
#endif
#ifdef CALLS_INTERNALS
void uv__run_timers(uv_loop_t *loop);
#endif
#ifdef GUARDED
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The start files have no landing pads, so this is linked without them. They would define this. */
__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;

static void on_illegal(int signal) { _exit(signal); }

/* Whether the processor refuses to enter a function behind its landing pad. */
static int is_guarded(void) {
  unsigned (*behind)(void) = (unsigned (*)(void)) ((char *) uv_version + 4);
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGILL, on_illegal);
    behind();
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child) abort();
  return WIFEXITED(status) && WEXITSTATUS(status) == SIGILL;
}
#endif

/* The same code as one of libuv's functions has, which some linkers merge with it. */
struct holder {
  char before[64];
  int number;
};
__attribute__((noinline)) int number_of(const struct holder *holder) { return holder->number; }

static int timers, works, asyncs, exits;

static void check(int result, const char *what) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", what, uv_strerror(result));
    exit(1);
  }
}

static const char *whose(uv_loop_t *loop) {
  return uv_backend_fd(loop) < 0 ? "ours" : "carried";
}

static void on_timer(uv_timer_t *timer) {
  timers++;
  if (timers == 3) uv_close((uv_handle_t *) timer, NULL);
}

static void on_async(uv_async_t *async) {
  asyncs++;
  uv_close((uv_handle_t *) async, NULL);
}

static void work(uv_work_t *request) { *(int *) request->data = 1; }

static void after_work(uv_work_t *request, int status) {
  check(status, "work");
  works += *(int *) request->data;
}

static void on_child_exit(uv_process_t *process, int64_t status, int signal) {
  exits += status == 0 && signal == 0;
  uv_close((uv_handle_t *) process, NULL);
}

static void close_timer(uv_timer_t *timer) { uv_close((uv_handle_t *) timer, NULL); }

/* A loop of a thread's own, and a message to the main thread's. */
static void in_thread(void *async) {
  uv_loop_t loop;
  uv_timer_t timer;
  check(uv_loop_init(&loop), "loop");
  printf("thread: %s\n", whose(&loop));
  check(uv_timer_init(&loop, &timer), "timer");
  check(uv_timer_start(&timer, close_timer, 1, 0), "start");
  check(uv_run(&loop, UV_RUN_DEFAULT), "run");
  check(uv_loop_close(&loop), "close");
  check(uv_async_send(async), "send");
}

/* The child is the program itself, or another one. */
static void start_child(uv_loop_t *loop, uv_process_t *child, char *self) {
  if (getenv("CHILD")) self = getenv("CHILD");
  char *arguments[] = {self, "child", NULL};
  uv_stdio_container_t streams[2];
  uv_process_options_t options;
  memset(&options, 0, sizeof options);
  streams[0].flags = UV_IGNORE;
  streams[1].flags = UV_INHERIT_FD;
  streams[1].data.fd = 1;
  options.file = self;
  options.args = arguments;
  options.stdio = streams;
  options.stdio_count = 2;
  options.exit_cb = on_child_exit;
  check(uv_spawn(loop, child, &options), "spawn");
}

int main(int count, char **arguments) {
  const char *name = count > 1 ? arguments[1] : "main";
  char *next = getenv("BECOME");
  if (next) {
    unsetenv("BECOME");
    execv(next, arguments);
  }
  struct holder holder;
  holder.number = 42;
  if (number_of(&holder) != 42) return 1;
  uv_loop_t *loop = uv_default_loop();
  setvbuf(stdout, NULL, _IONBF, 0);
  printf("%s: %s\n", name, whose(loop));
#ifdef GUARDED
  printf("code: %s\n", is_guarded() ? "guarded" : "open");
#endif
  uv_timer_t timer;
  uv_work_t request;
  int done = 0;
  timers = works = asyncs = exits = 0;
  check(uv_timer_init(loop, &timer), "timer");
  check(uv_timer_start(&timer, on_timer, 1, 1), "start");
  request.data = &done;
  check(uv_queue_work(loop, &request, work, after_work), "queue");
#ifdef CALLS_INTERNALS
  uv__run_timers(loop);
#endif
  if (count > 1) {
    check(uv_run(loop, UV_RUN_DEFAULT), "run");
    return timers == 3 && works == 1 ? 0 : 1;
  }
  uv_async_t async;
  uv_thread_t thread;
  uv_process_t child;
  check(uv_async_init(loop, &async, on_async), "async");
  check(uv_thread_create(&thread, in_thread, &async), "thread");
  start_child(loop, &child, arguments[0]);
  check(uv_run(loop, UV_RUN_DEFAULT), "run");
  check(uv_thread_join(&thread), "join");
  check(uv_loop_close(loop), "close");
  printf("timers %d, works %d, asyncs %d, exits %d\n", timers, works, asyncs, exits);
  return timers == 3 && works == 1 && asyncs == 1 && exits == 1 ? 0 : 1;
}
