/* What libuv's test runner tells the address sanitizer, when it is built for it. */

const char* __asan_default_options(void) {
  /* The sandbox collects what lies there, of helpers and children as well. */
  return "log_path=" REPORTS "/asan";
}
