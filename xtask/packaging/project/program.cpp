// A C++ program that says which libuv it runs on, from inside the loop.
#include <uv.h>

#include <cstdio>

int main() {
  uv_loop_t loop;
  if (uv_loop_init(&loop) != 0) return 1;
  uv_timer_t timer;
  uv_timer_init(&loop, &timer);
  uv_timer_start(
      &timer,
      [](uv_timer_t* fired) {
        std::puts(uv_version_string());
        uv_close(reinterpret_cast<uv_handle_t*>(fired), nullptr);
      },
      1, 0);
  uv_run(&loop, UV_RUN_DEFAULT);
  return uv_loop_close(&loop) == 0 && uv_version() == UV_VERSION_HEX ? 0 : 1;
}
