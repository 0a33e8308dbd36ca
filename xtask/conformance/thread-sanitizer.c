/* What libuv's test runner tells the thread sanitizer, when it is built for it. */

const char* __tsan_default_options(void) {
  /* A test runs work on a pool in a child that it has forked off from threads. The sandbox collects
   * what lies among the reports, of helpers and children as well. */
  return "die_after_fork=0:log_path=" REPORTS "/tsan";
}
