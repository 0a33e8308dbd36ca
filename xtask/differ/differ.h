/* What the parts of the random program share. `main` is in main.c. */
#ifndef DIFFER_H
#define DIFFER_H
#include <uv.h>

extern uv_loop_t loop;
/* How many callbacks are certain to come: a step ends when there are none left. */
extern int awaited;
/* Which mechanism the library under test waits with, "" for its own choice. */
extern const char* poller;

/* A random number below `limit`. Callbacks must not ask for one: their order is not compared. */
unsigned below(unsigned limit);
/* Adds a line to what the step prints. Not to be called by other threads. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* "ok", or the name of the error. */
const char* name(int error);
/* Allocates a request, which has its number as its data. */
void* request(size_t size);
/* The number of the last request. */
extern int requests;
/* Runs the loop without waiting until `awaited` is 0, then until nothing more happens. */
void settle(int turns);

/* One of the handles that live from step to step. Any call may be made on any of them. */
struct slot {
  union uv_any_handle any; /* First, so that a handle's address is its slot's. */
  int state;               /* 0 free, 1 open, 2 closing */
  int kind;
  int listens;  /* The original never reports requests of a server, nor does it fail them. */
  int failed;   /* to connect: the original does not always say that there is nothing to read. */
  int connects; /* The original forgets a shutdown if the connection then fails. */
  int unpolled; /* Its descriptor is a file: the original aborts when it is to be polled. */
  int signals;  /* 1 for good, 2 for one signal: the original does not forget which it was first. */
  long bytes;   /* read in this step */
};
enum { TCP, PIPE, UDP, TIMER, ASYNC, IDLE, PREPARE, CHECK, POLL, SIGNAL, FS_EVENT, FS_POLL, KINDS };
enum { SLOTS = 8, BYTES = 5000 };
extern struct slot slots[SLOTS];
extern char bytes[BYTES];
extern int step_ends; /* set by a call on a handle after which no other is to be made in this step */
int of(void* handle);
/* A random slot in use, of a kind if that is not -1. */
struct slot* any(int kind);
void on_close(uv_handle_t* handle);
void on_alloc(uv_handle_t* handle, size_t size, uv_buf_t* buf);
/* An address to bind to or to connect to. */
void address(struct sockaddr_storage* to, int kind, int connects);
void stream_op(struct slot* slot);
void tcp_op(struct slot* slot);
void pipe_op(struct slot* slot);
void udp_op(struct slot* slot);
void reserve_refused(void);
/* What has been read since, what the handles say of themselves, and whether the loop is alive. */
void tell_handles(void);
void close_handles(void);

/* Each makes random calls, and returns 1 if the step is to end, so that what was begun is over before
 * the next call. */
int handle_op(void);
int file_op(void);
int directory_op(void);
int process_op(void);
int thread_op(void);
int work_op(void);
int nested_op(void);
int order_op(void);
int conversation_op(void);
int terminal_op(void);
int signal_op(void);
int datagram_op(void);
int poll_op(void);
int fs_event_op(void);
int fs_poll_op(void);
int system_op(void);
/* Closes the handles that the watchers' part has open. */
void watchers_end(void);
/* Closes the descriptors that the files' part has open. */
void file_end(void);
#endif
