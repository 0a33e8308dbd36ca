/* Ends the program when a call of the library has failed. */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

static inline void check(int result, const char* what) {
  if (result >= 0)
    return;
  fprintf(stderr, "%s: %s\n", what, uv_strerror(result));
  exit(1);
}
