/* How long a loop is held up in uv_spawn when its process has a gibibyte of memory in use. */
#include "../echo/common.h"
#include <string.h>
#include <sys/mman.h>
#include <uv.h>

#define SPAWNS 101
#define BYTES (1UL << 30)

static void on_exit_of(uv_process_t* child, int64_t status, int signal) {
  MUST(status == 0 && signal == 0);
  uv_close((uv_handle_t*) child, NULL);
}

static int compare(const void* one, const void* other) {
  double difference = *(const double*) one - *(const double*) other;
  return (difference > 0) - (difference < 0);
}

static double median_ns(char* self) {
  double times[SPAWNS];
  for (int i = 0; i < SPAWNS; i++) {
    uv_process_t child;
    char* arguments[] = {self, "child", NULL};
    uv_process_options_t options = {.exit_cb = on_exit_of, .file = self, .args = arguments};
    uint64_t start = uv_hrtime();
    MUST(uv_spawn(uv_default_loop(), &child, &options) == 0);
    times[i] = uv_hrtime() - start;
    MUST(uv_run(uv_default_loop(), UV_RUN_DEFAULT) == 0);
  }
  qsort(times, SPAWNS, sizeof *times, compare);
  return times[SPAWNS / 2];
}

int main(int argc, char** argv) {
  if (argc == 2)
    return 0;
  printf("small: %f ns/spawn\n", median_ns(argv[0]));
  char* memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(memory != MAP_FAILED);
  /* With huge pages there would be next to nothing for a fork to copy. */
  MUST(madvise(memory, BYTES, MADV_NOHUGEPAGE) == 0);
  memset(memory, 1, BYTES);
  printf("1 GiB: %f ns/spawn\n", median_ns(argv[0]));
  return 0;
}
