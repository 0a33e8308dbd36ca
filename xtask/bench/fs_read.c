/* Reads of a file that the kernel has in its cache.
 *
 *   fs_read <bytes> <reads>
 *
 * Says what a read takes in the loop's own thread, and through the pool with one, four and
 * thirty-two at a time. */
#include "../echo/common.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define MOST 32

static uv_file file;
static size_t bytes;
static long wanted, begun, done;
static uv_fs_t requests[MOST];
static char* room[MOST];

/* The bytes in front and at the end have to be those that were written. */
static void check(const uv_fs_t* request, const char* read) {
  MUST(request->result == (ssize_t) bytes);
  MUST(read[0] == 'a' && read[bytes - 1] == 'a' + (char) ((bytes - 1) % 26));
}

static void begin(uv_fs_t* request);

static void on_read(uv_fs_t* request) {
  check(request, room[request - requests]);
  uv_fs_req_cleanup(request);
  done++;
  if (begun < wanted)
    begin(request);
}

static void begin(uv_fs_t* request) {
  uv_buf_t buffer = uv_buf_init(room[request - requests], bytes);
  begun++;
  MUST(uv_fs_read(uv_default_loop(), request, file, &buffer, 1, 0, on_read) == 0);
}

static double at_a_time(int count) {
  uint64_t start = uv_hrtime();
  begun = done = 0;
  for (int i = 0; i < count; i++)
    begin(&requests[i]);
  MUST(uv_run(uv_default_loop(), UV_RUN_DEFAULT) == 0);
  MUST(done == wanted);
  return (double) (uv_hrtime() - start) / wanted;
}

static double in_the_loop(void) {
  uint64_t start = uv_hrtime();
  for (long i = 0; i < wanted; i++) {
    uv_buf_t buffer = uv_buf_init(room[0], bytes);
    uv_fs_read(NULL, &requests[0], file, &buffer, 1, 0, NULL);
    check(&requests[0], room[0]);
    uv_fs_req_cleanup(&requests[0]);
  }
  return (double) (uv_hrtime() - start) / wanted;
}

int main(int argc, char** argv) {
  MUST(argc == 3);
  bytes = atol(argv[1]);
  wanted = atol(argv[2]);
  for (int i = 0; i < MOST; i++)
    MUST((room[i] = calloc(1, bytes)) != NULL);
  for (size_t i = 0; i < bytes; i++)
    room[0][i] = 'a' + (char) (i % 26);
  file = open("cached", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  MUST(file >= 0 && write(file, room[0], bytes) == (ssize_t) bytes);
  /* The threads of the pool and the pages of the buffers are there before anything counts. */
  at_a_time(MOST);
  printf("sync: %f ns/read\n", in_the_loop());
  printf("1 at a time: %f ns/read\n", at_a_time(1));
  printf("4 at a time: %f ns/read\n", at_a_time(4));
  printf("32 at a time: %f ns/read\n", at_a_time(MOST));
  return 0;
}
