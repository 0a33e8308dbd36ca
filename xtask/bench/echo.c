/* What a server spends on echoing 64 bytes with so many connections at once. */
#include "servers.h"

int main(int argc, char** argv) {
  MUST(argc == 2 || argc == 3);
  measure(argv, "1 at once", (load_t){"1", "1", "10000"});
  measure(argv, "50 at once", (load_t){"50", "50", "50000"});
  measure(argv, "500 at once", (load_t){"500", "500", "50000"});
  return 0;
}
