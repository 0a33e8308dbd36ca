/* Opens a module by its path and calls it, as Python does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  int flags = RTLD_NOW | (getenv("DEEPBIND") ? RTLD_DEEPBIND : 0);
  void *module = count > 1 ? dlopen(arguments[1], flags) : NULL;
  int (*entry)(int, char **) = module ? (int (*)(int, char **)) dlsym(module, "module_main") : NULL;
  char *given[] = {arguments[0], "module", NULL};
  if (entry == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return entry(2, given);
}
