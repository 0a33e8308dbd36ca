/* To be preloaded by the user: says on standard output that it is there, once the program ends, or
 * with THREAD starts a thread before the program begins. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef THREAD
static void *wait_for_the_end(void *unused) {
  (void) unused;
  for (;;) pause();
}

__attribute__((constructor)) static void start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_the_end, NULL) != 0) abort();
}
#else
__attribute__((destructor)) static void end(void) {
  /* Some programs close it before they end. */
  ssize_t written = write(1, "preloaded\n", 10);
  (void) written;
}
#endif
