/* What the programs of the echo benchmark have in common. */
#ifndef ECHO_COMMON_H
#define ECHO_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define MESSAGE 64
/* Room for more than a message, so that one read finds out that there is no more. */
#define ROOM 1024

#define MUST(what)                                                            \
  do {                                                                        \
    if (!(what)) {                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);              \
      perror("errno");                                                        \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static inline void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  MUST(sched_setaffinity(0, sizeof set, &set) == 0);
}

/* The processor time of this process, in nanoseconds. */
static inline double cpu_ns(void) {
  struct rusage usage;
  MUST(getrusage(RUSAGE_SELF, &usage) == 0);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

/* Lets this process have as many descriptors as it may. */
static inline void raise_limit(void) {
  struct rlimit limit;
  MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Says how much processor time went into each message, and how many turns of the loop. */
static inline void report(double ns, double turns, double messages) {
  printf("%f %f\n", ns / messages, turns / messages);
  fflush(stdout);
}

#endif
