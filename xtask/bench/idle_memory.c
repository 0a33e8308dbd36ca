/* How much memory is resident: of a process with one loop that has turned, and how much more
 * with each of a thousand further loops. */
#include "../echo/common.h"
#include <string.h>
#include <uv.h>

#define LOOPS 1000

/* The count in statm lags behind by some pages of each processor; this one is exact. */
static double resident(void) {
  static char line[256];
  double kibibytes = -1;
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  MUST(file != NULL);
  while (kibibytes < 0 && fgets(line, sizeof line, file) != NULL)
    sscanf(line, "Rss: %lf kB", &kibibytes);
  fclose(file);
  MUST(kibibytes > 0);
  return kibibytes * 1024;
}

static void turn(uv_loop_t* loop) {
  MUST(uv_loop_init(loop) == 0);
  MUST(uv_run(loop, UV_RUN_NOWAIT) == 0);
}

int main(void) {
  /* What the program itself keeps for a loop is resident before the first. */
  uv_loop_t* loops = calloc(LOOPS + 1, sizeof *loops);
  MUST(loops != NULL);
  memset(loops, 1, (LOOPS + 1) * sizeof *loops);
  raise_limit();
  resident();
  turn(&loops[LOOPS]);
  double one = resident() - (LOOPS + 1) * sizeof *loops;
  for (int i = 0; i < LOOPS; i++)
    turn(&loops[i]);
  double all = resident() - (LOOPS + 1) * sizeof *loops;
  for (int i = 0; i <= LOOPS; i++)
    MUST(uv_loop_close(&loops[i]) == 0);
  free(loops);
  printf("process: %f bytes\n", one);
  printf("each loop: %f bytes\n", (all - one) / LOOPS);
  return 0;
}
