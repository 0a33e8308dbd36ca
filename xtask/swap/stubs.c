/* Exports functions with the names of libuv's that end the program, as Bun does for native addons. */
#include <stdio.h>
#include <stdlib.h>

#define STUB(name) \
  void name(void) { abort(); }

STUB(uv_version)
STUB(uv_run)
STUB(uv_loop_size)
STUB(uv_handle_size)
STUB(uv_req_size)
STUB(uv_buf_init)
STUB(uv_cond_signal)
STUB(uv_hrtime)
STUB(uv_is_active)
STUB(uv_mutex_lock)
STUB(uv_mutex_unlock)
STUB(uv_now)
STUB(uv_once)
STUB(uv_rwlock_rdlock)
STUB(uv_signal_start)

int main(void) {
  puts("ran");
  return 0;
}
