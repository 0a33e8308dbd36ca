/* Preloaded into the guide's programs in C. It notes when each line is printed, and stops the process
 * when the loop has run, so that somebody may read what was recorded before the loop is closed. */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

static FILE* stamps;

int printf(const char* format, ...) {
  struct timespec now;
  va_list arguments;
  char text[4096];
  clock_gettime(CLOCK_MONOTONIC, &now);
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (stamps == NULL)
    stamps = fopen(getenv("GUIDE_STAMPS"), "w");
  if (stamps != NULL && strchr(text, '\n') != NULL)
    fprintf(stamps, "%lld\n", now.tv_sec * 1000000000ll + now.tv_nsec);
  fputs(text, stdout);
  return length;
}

int uv_run(uv_loop_t* loop, uv_run_mode mode) {
  int (*run)(uv_loop_t*, uv_run_mode);
  *(void**) &run = dlsym(RTLD_NEXT, "uv_run");
  int more = run(loop, mode);
  if (stamps != NULL)
    fflush(stamps);
  raise(SIGSTOP);
  return more;
}
