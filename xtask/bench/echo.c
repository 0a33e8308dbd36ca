/* What a server spends on echoing 64 bytes with so many connections at once. */
#include "servers.h"

int main(int argc, char** argv) {
  (void) argc;
  compare(argv[0], "1 at once", (load_t){"1", "1", "10000"});
  compare(argv[0], "50 at once", (load_t){"50", "50", "50000"});
  compare(argv[0], "500 at once", (load_t){"500", "500", "50000"});
  return 0;
}
