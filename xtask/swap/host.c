/* Opens a module by its path and calls it, as Python does; with REOPEN, threads first open and close
 * it many times at once. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *reopen(void *path) {
  for (int n = 0; n < 200; n++) {
    void *module = dlopen(path, RTLD_NOW);
    unsigned (*version)(void) = module ? (unsigned (*)(void)) dlsym(module, "uv_version") : NULL;
    if (version == NULL || version() == 0) abort();
    dlclose(module);
  }
  return NULL;
}

int main(int count, char **arguments) {
  int flags = RTLD_NOW | (getenv("DEEPBIND") ? RTLD_DEEPBIND : 0);
  pthread_t threads[4];
  for (int n = 0; n < 4 && count > 1 && getenv("REOPEN"); n++)
    if (pthread_create(&threads[n], NULL, reopen, arguments[1]) != 0) abort();
  for (int n = 0; n < 4 && count > 1 && getenv("REOPEN"); n++)
    pthread_join(threads[n], NULL);
  void *module = count > 1 ? dlopen(arguments[1], flags) : NULL;
  int (*entry)(int, char **) = module ? (int (*)(int, char **)) dlsym(module, "module_main") : NULL;
  char *given[] = {arguments[0], "module", NULL};
  if (entry == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return entry(2, given);
}
