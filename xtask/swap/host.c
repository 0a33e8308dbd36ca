/* Opens modules and calls each, as Python does; with AGAIN all of them are called once more. With
 * REOPEN, threads first open and close the first one many times at once. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 8

static void open_and_close(const char *path) {
  void *module = dlopen(path, RTLD_NOW);
  unsigned (*version)(void) = module ? (unsigned (*)(void)) dlsym(module, "uv_version") : NULL;
  if (version == NULL || version() == 0) abort();
  dlclose(module);
}

static void *reopen(void *path) {
  for (int n = 0; n < 200; n++) open_and_close(path);
  return NULL;
}

static void reopen_in_threads(char *path) {
  pthread_t threads[4];
  for (int n = 0; n < 4; n++)
    if (pthread_create(&threads[n], NULL, reopen, path) != 0) abort();
  for (int n = 0; n < 4; n++) pthread_join(threads[n], NULL);
}

int main(int count, char **arguments) {
  int flags = (getenv("LAZY") ? RTLD_LAZY : RTLD_NOW) | (getenv("DEEPBIND") ? RTLD_DEEPBIND : 0);
  int (*entries[MOST])(int, char **);
  char *given[] = {arguments[0], "module", NULL};
  int failed = count < 2 || count > MOST;
  if (count > 1 && getenv("REOPEN")) reopen_in_threads(arguments[1]);
  for (int n = 1; n < count && !failed; n++) {
    void *module = dlopen(arguments[n], flags);
    entries[n] = module ? (int (*)(int, char **)) dlsym(module, "module_main") : NULL;
    if (entries[n] == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    failed = entries[n](2, given);
  }
  for (int n = 1; n < count && !failed && getenv("AGAIN"); n++) failed = entries[n](2, given);
  return failed;
}
