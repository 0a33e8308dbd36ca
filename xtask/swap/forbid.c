/* Runs a program that may not turn memory which it has written into code. */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

int main(int count, char **arguments) {
  if (count < 2) return 2;
  if (prctl(PR_SET_MDWE, 1, 0, 0, 0) != 0) return 77;
  execvp(arguments[1], arguments + 1);
  perror(arguments[1]);
  return 1;
}
