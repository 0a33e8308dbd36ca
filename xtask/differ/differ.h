/* What the parts of the random program share. `main` is in program.c. */
#ifndef DIFFER_H
#define DIFFER_H
#include <uv.h>

extern uv_loop_t loop;
/* How many callbacks are certain to come: a step ends when there are none left. */
extern int awaited;

/* A random number below `limit`. Callbacks must not ask for one: their order is not compared. */
unsigned below(unsigned limit);
/* Adds a line to what the step prints. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* "ok", or the name of the error. */
const char* name(int error);

/* Each makes one random call; those that return 1 want the step to end, so that what they have begun
 * is over before the next call. */
int file_op(void);
int process_op(void);
/* Closes the descriptors that the files' part has open. */
void file_end(void);
#endif
