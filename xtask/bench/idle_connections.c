/* Eight connections are echoed, alone and among ten thousand that are idle: the cost of a
 * message must follow those that are active. */
#include "servers.h"

int main(int argc, char** argv) {
  MUST(argc == 2 || argc == 3);
  measure(argv, "8 of 8", (load_t){"8", "8", "40000"});
  measure(argv, "8 of 10000", (load_t){"10000", "8", "40000"});
  return 0;
}
