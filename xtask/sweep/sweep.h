/* What the interposer (interpose.c), the scenarios and the driver (main.c) share. */
#ifndef SWEEP_H
#define SWEEP_H
#include <uv.h>

/* interpose.c: stands between libuv.so.1 and the C library. */
void interpose(void);
void interpose_aim(const char* call, int number, const char* error);
void interpose_disarm(void);
void interpose_rearm(void); /* the same call as before, counted from now */
int interpose_was_hit(void);
int interpose_denied(void); /* whether it was, with EACCES */
int interpose_unknown_imports(void);
void interpose_print_cases(const char* scenario);
void interpose_print_reached(void);
long interpose_live(void);
void* uv_side_malloc(size_t size);
void* uv_side_calloc(size_t count, size_t size);
void* uv_side_realloc(void* memory, size_t size);
void uv_side_free(void* memory);
long uv_side_live(void);

/* main.c: what a scenario tells of itself. */
extern uv_loop_t* loop;
int note(int result, const char* what);   /* an error that the library reported; returns it */
void fault(const char* what);             /* what the library must not do */
void submitted(void* request);            /* a request was accepted */
void reported(void* request, int status); /* its callback was called */
void aim_reached(void);                   /* the scenario did what it was for */
void give_up(void);                       /* close every handle */
extern int argument_count;
extern char** arguments;                  /* of main */
#define TRY(call) note((call), #call)

struct scenario {
  const char* name;
  void (*run)(void);
};
extern const struct scenario scenarios[];

/* bulk.c */
void tcp_bulk(void);
void pipe_bulk(void);
void ipc_bulk(void);

/* small.c */
void accessors(void);
void conversions(void);
void loops_made(void);
void titles(void);
void detached(void);
void udp_adopted(void);
void watching_tree(void);
void recorded(void);
#endif
