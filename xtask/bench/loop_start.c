/* What it takes until there is a loop: one more in a process that runs, and one in a process
 * that has to be started for it and ends after one turn. */
#include "../echo/common.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define LOOPS 20000
#define PROCESSES 200

extern char** environ;

static double loops(void) {
  uint64_t start = uv_hrtime();
  for (int i = 0; i < LOOPS; i++) {
    uv_loop_t loop;
    MUST(uv_loop_init(&loop) == 0);
    MUST(uv_loop_close(&loop) == 0);
  }
  return (double) (uv_hrtime() - start) / LOOPS;
}

static double processes(char* self) {
  uint64_t start = uv_hrtime();
  for (int i = 0; i < PROCESSES; i++) {
    char* arguments[] = {self, "once", NULL};
    pid_t child;
    int status;
    MUST(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0);
    MUST(waitpid(child, &status, 0) == child && status == 0);
  }
  return (double) (uv_hrtime() - start) / PROCESSES;
}

int main(int argc, char** argv) {
  if (argc == 2) {
    MUST(uv_run(uv_default_loop(), UV_RUN_NOWAIT) == 0);
    MUST(uv_loop_close(uv_default_loop()) == 0);
    return 0;
  }
  /* Processes first: what a parent has just used of its processor decides where the kernel
   * lets its children run beside a busy program. */
  double process = processes(argv[0]);
  printf("loop: %f ns/loop\n", loops());
  printf("process: %f ns/process\n", process);
  return 0;
}
