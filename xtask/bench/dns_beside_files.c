/* What a read of a cached file takes while eight names are being looked up all the time, half
 * of them in the hosts file and half of them numbers. How many look-ups fit in beside the reads
 * is no measure of anything: the sooner the reads are done, the fewer. */
#include "../echo/common.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define LOOKUPS 8
#define READS 20000
#define BYTES 4096

static uv_file file;
static char room[BYTES];
static long reads, lookups;
static uv_getaddrinfo_t requests[LOOKUPS];

static void look_up(uv_getaddrinfo_t* request);

static void on_looked_up(uv_getaddrinfo_t* request, int status, struct addrinfo* found) {
  MUST(status == 0 && found != NULL);
  uv_freeaddrinfo(found);
  lookups++;
  if (reads < READS)
    look_up(request);
}

static void look_up(uv_getaddrinfo_t* request) {
  const char* name = (request - requests) % 2 == 0 ? "localhost" : "127.0.0.1";
  MUST(uv_getaddrinfo(uv_default_loop(), request, on_looked_up, name, "80", NULL) == 0);
}

static void on_read(uv_fs_t* request) {
  uv_buf_t buffer = uv_buf_init(room, BYTES);
  MUST(request->result == BYTES);
  uv_fs_req_cleanup(request);
  if (++reads < READS)
    MUST(uv_fs_read(uv_default_loop(), request, file, &buffer, 1, 0, on_read) == 0);
}

int main(void) {
  uv_fs_t request;
  uv_buf_t buffer = uv_buf_init(room, BYTES);
  file = open("cached", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  MUST(file >= 0 && write(file, room, BYTES) == BYTES);
  uint64_t start = uv_hrtime();
  for (int i = 0; i < LOOKUPS; i++)
    look_up(&requests[i]);
  MUST(uv_fs_read(uv_default_loop(), &request, file, &buffer, 1, 0, on_read) == 0);
  MUST(uv_run(uv_default_loop(), UV_RUN_DEFAULT) == 0);
  double took = uv_hrtime() - start;
  MUST(reads == READS && lookups >= LOOKUPS);
  printf("4 KiB: %f ns/read\n", took / READS);
  return 0;
}
