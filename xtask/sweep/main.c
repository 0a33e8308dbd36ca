/* Runs one scenario with one call failing, and judges how it ended.
 *
 *   list                      names the scenarios
 *   count SCENARIO            runs it unharmed; prints the cases that follow, and what it reached
 *   batch NAME=BLOCKS ...     runs cases, each in a process of its own; BLOCKS as `count` says
 *   one NAME=BLOCKS           runs one case in this process
 *
 * A case runs its scenario twice: with the call failing, and then unharmed, which must succeed, whatever
 * happened before. In the end every request must have been reported once, and no memory and no descriptor be
 * left. A scenario in which nothing went wrong for the program must have done what it is for. */
#include "sweep.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60     /* seconds for a case */
#define PATIENCE 10000  /* milliseconds after which a scenario waits in vain */

uv_loop_t* loop;
int argument_count;
char** arguments;
static uv_loop_t loop_memory;
static uv_timer_t patience;
static struct { void* request; int open; } requests[256];
static int request_count, errors, running, done, stalled, faults;
static char first_error[256];

void fault(const char* what) {
  printf("fault %s\n", what);
  faults++;
}

int note(int result, const char* what) {
  if (result < 0) {
    char name[64]; /* uv_err_name leaks for numbers that it does not know */
    uv_err_name_r(result, name, sizeof name);
    if (errors++ == 0) snprintf(first_error, sizeof first_error, "%.160s: %s", what, name);
    if (running) give_up();
  }
  return result;
}

void submitted(void* request) {
  if (request_count == (int) (sizeof requests / sizeof *requests)) abort();
  requests[request_count].request = request;
  requests[request_count++].open = 1;
}

void reported(void* request, int status) {
  int at = request_count - 1;
  while (at >= 0 && !(requests[at].request == request && requests[at].open)) at--;
  if (at < 0) fault("a request was reported twice, or was never accepted");
  else requests[at].open = 0;
  note(status, "a request");
}

void aim_reached(void) { done = 1; }

static void close_one(uv_handle_t* handle, void* unused) {
  (void) unused;
  if (!uv_is_closing(handle)) uv_close(handle, NULL);
}
void give_up(void) { uv_walk(loop, close_one, NULL); }

static void on_patience(uv_timer_t* timer) {
  (void) timer;
  stalled = 1;
  give_up();
}

static const struct scenario* find(const char* name, size_t length) {
  for (const struct scenario* at = scenarios; at->name; at++)
    if (strlen(at->name) == length && strncmp(at->name, name, length) == 0) return at;
  fprintf(stderr, "there is no such scenario\n");
  exit(2);
}

static void round_of(const struct scenario* scenario) {
  request_count = errors = running = done = stalled = 0;
  first_error[0] = '\0';
  loop = &loop_memory;
  if (TRY(uv_loop_init(loop)) < 0) return;
  if (TRY(uv_timer_init(loop, &patience)) == 0) {
    TRY(uv_timer_start(&patience, on_patience, PATIENCE, 0));
    uv_unref((uv_handle_t*) &patience);
  }
  scenario->run();
  running = 1;
  if (errors) give_up();
  uv_run(loop, UV_RUN_DEFAULT);
  give_up();
  uv_run(loop, UV_RUN_DEFAULT);
  running = 0;
  int closed = uv_loop_close(loop);
  if (closed != 0) fault("uv_loop_close: the loop is still busy");
  for (int at = 0; at < request_count; at++)
    if (requests[at].open) fault("a request was never reported");
  if (stalled && !errors) fault("the scenario waited in vain, and no error was reported");
  else if (!errors && !done) fault("the scenario did not do its work, and no error was reported");
}

static int descriptors(char* list, size_t size) {
  int count = 0;
  DIR* dir = opendir("/proc/self/fd");
  list[0] = '\0';
  for (struct dirent* entry; (entry = readdir(dir)) != NULL;) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(dir)) continue;
    size_t used = strlen(list);
    snprintf(list + used, size - used, " %s", entry->d_name);
    count++;
  }
  closedir(dir);
  return count;
}

static void prepare(void) {
  interpose();
  uv_replace_allocator(uv_side_malloc, uv_side_realloc, uv_side_calloc, uv_side_free);
  signal(SIGPIPE, SIG_IGN);
}

/* Whether the failure leaks. It may also have led to something that the library makes once and keeps, which it
 * would not have made otherwise; then the same failure once more leaves no more than before. */
static int keeps_growing(const struct scenario* scenario, long blocks) {
  long before = interpose_live();
  if (before <= blocks) return 0;
  interpose_rearm();
  round_of(scenario);
  interpose_disarm();
  return !interpose_was_hit() || interpose_live() > before;
}

/* The second round, and what must hold at the end. */
static void conclude(const struct scenario* scenario, int before, long blocks) {
  char now[512], text[600];
  interpose_disarm();
  round_of(scenario);
  if (errors) {
    snprintf(text, sizeof text, "a later, unharmed round failed: %s", first_error);
    fault(text);
  }
  int grew = blocks >= 0 && keeps_growing(scenario, blocks);
  uv_library_shutdown();
  int after = descriptors(now, sizeof now);
  if (after != before) {
    snprintf(text, sizeof text, "%d descriptors became %d:%s", before, after, now);
    fault(text);
  }
  if (uv_side_live() != 0) {
    snprintf(text, sizeof text, "%ld blocks of the program's allocator are left", uv_side_live());
    fault(text);
  }
  if (grew && interpose_live() > blocks) { /* the shutdown gives back what the pool holds */
    snprintf(text, sizeof text, "%ld blocks of memory are left instead of %ld", interpose_live(), blocks);
    fault(text);
  }
}

static int count(const char* name) {
  char now[512];
  const struct scenario* scenario = find(name, strlen(name));
  int before = descriptors(now, sizeof now);
  prepare();
  round_of(scenario);
  if (errors) fault(first_error);
  interpose_print_cases(name);
  conclude(scenario, before, -1);
  interpose_print_reached();
  printf("blocks %ld\n", interpose_live());
  return faults + interpose_unknown_imports() != 0;
}

static int run_case(const char* text) {
  char name[256], now[512];
  snprintf(name, sizeof name, "%s", text);
  char* blocks = strchr(name, '=');
  char* call = strchr(name, '/');
  char* number = call ? strchr(call, '#') : NULL;
  char* error = number ? strchr(number, '/') : NULL;
  if (error == NULL || blocks == NULL) return 2;
  *blocks++ = *call++ = *number++ = *error++ = '\0';
  const struct scenario* scenario = find(name, strlen(name));
  int before = descriptors(now, sizeof now);
  prepare();
  interpose_aim(call, atoi(number), error);
  round_of(scenario);
  int hit = interpose_was_hit();
  if (errors) printf("reported %s\n", first_error);
  conclude(scenario, before, atol(blocks));
  return faults ? 1 : hit ? 0 : 3;
}

static void supervise(const char* self, const char* name) {
  char output[60000] = "";
  size_t used = 0;
  int fds[2], status;
  ssize_t got;
  if (pipe2(fds, O_CLOEXEC) != 0) exit(2);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    alarm(DEADLINE);
    execl(self, self, "one", name, NULL);
    _exit(2);
  }
  close(fds[1]);
  waitpid(child, &status, 0);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  while ((got = read(fds[0], output + used, sizeof output - 1 - used)) > 0) used += got;
  output[used] = '\0';
  close(fds[0]);
  int left = 0;
  for (int tries = 0; tries < 200; tries++) {
    pid_t orphan = waitpid(-1, NULL, WNOHANG);
    if (orphan < 0) break;
    if (orphan == 0) usleep(5000);
    left = tries == 199;
  }
  for (char* at = output; *at; at++)
    if (*at == '\n') *at = ';';
  int length = (int) (strchr(name, '=') - name);
  const char* verdict = "fail";
  char why[64] = "";
  if (WIFSIGNALED(status))
    snprintf(why, sizeof why, WTERMSIG(status) == SIGALRM ? "did not end in time;" : "killed by signal %d;", WTERMSIG(status));
  else if (left) snprintf(why, sizeof why, "left a process behind;");
  else if (WEXITSTATUS(status) == 0) verdict = "ok";
  else if (WEXITSTATUS(status) == 3) verdict = "unreached";
  printf("%s %.*s %s%s\n", verdict, length, name, why, output);
}

int main(int argc, char** argv) {
  argument_count = argc;
  arguments = argv;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc == 2 && strcmp(argv[1], "list") == 0) {
    for (const struct scenario* at = scenarios; at->name; at++) printf("%s\n", at->name);
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], "count") == 0) return count(strdup(argv[2])); /* a title overwrites argv */
  if (argc == 3 && strcmp(argv[1], "one") == 0) return run_case(argv[2]);
  if (argc < 3 || strcmp(argv[1], "batch") != 0) return 2;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int at = 2; at < argc; at++) supervise("/proc/self/exe", argv[at]);
  return 0;
}
