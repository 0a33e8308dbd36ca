/* Watchers of signals, descriptors and files, each in a state that is complete before the loop runs. */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "differ.h"

/* Signals. Those that the handles of handles.c watch are not sent. */
enum { WATCHERS = 4 };
static const int signals[] = {SIGUSR2, SIGHUP, SIGWINCH, SIGURG};
static struct {
  uv_signal_t handles[WATCHERS];
  int counts[WATCHERS], expected, closing, number;
} watch;

static void on_signal_gone(uv_handle_t* handle) {
  (void) handle;
  if (--watch.closing > 0) return;
  awaited--;
  for (int i = 0; i < WATCHERS; i++) say("signals %d watcher %d: %d", watch.number, i, watch.counts[i]);
}
static void stop_watching(void) {
  watch.closing = WATCHERS;
  for (int i = 0; i < WATCHERS; i++) uv_close((uv_handle_t*) &watch.handles[i], on_signal_gone);
}
static void on_signal(uv_signal_t* handle, int signum) {
  long i = handle - watch.handles;
  watch.counts[i]++;
  say("signals %d watcher %ld heard %d active %d", watch.number, i, signum, uv_is_active((uv_handle_t*) handle));
  if (--watch.expected == 0) stop_watching();
}

static void emit(int signum, unsigned how) {
  switch (how) {
    case 0: kill(getpid(), signum); break;
    case 1: raise(signum); break;
    default: say("  uv_kill: %s", name(uv_kill(getpid(), signum))); break;
  }
}

/* How many are to come is known: each signal is sent once, and is told to each handle that watches it. */
int signal_op(void) {
  int watched[WATCHERS], at, result;
  memset(&watch, 0, sizeof watch);
  watch.number = ++requests;
  for (int i = 0; i < WATCHERS; i++) {
    unsigned how = below(4);
    uv_signal_init(&loop, &watch.handles[i]);
    at = (int) below(4);
    watched[i] = how == 0 ? 0 : signals[at];
    if (how == 0) continue;
    result = how == 1 ? uv_signal_start_oneshot(&watch.handles[i], on_signal, watched[i])
                      : uv_signal_start(&watch.handles[i], on_signal, watched[i]);
    say("signals %d watcher %d %s %d: %s", watch.number, i, how == 1 ? "once" : "always", watched[i], name(result));
  }
  if (below(3) == 0) {
    at = (int) below(WATCHERS);
    say("signals %d stop %d: %s", watch.number, at, name(uv_signal_stop(&watch.handles[at])));
    watched[at] = 0;
  }
  awaited++;
  for (int s = 0; s < 4; s++) {
    int watchers = 0;
    for (int i = 0; i < WATCHERS; i++) watchers += watched[i] == signals[s];
    if (watchers == 0 || below(4) == 0) continue; /* Nobody would keep the process from dying of it. */
    watch.expected += watchers;
    emit(signals[s], below(3));
  }
  say("signals %d kill: %s %s %s", watch.number, name(uv_kill(getpid(), 0)), name(uv_kill(getpid(), 999)),
      name(uv_kill(0x3fffffff, SIGTERM)));
  if (watch.expected == 0) stop_watching();
  return 1;
}

/* Descriptors. */
struct polled {
  uv_poll_t poll;
  int fds[2], number, rounds, next;
};
static struct polled* unready; /* What it waits for does not happen. */
static void on_poll_gone(uv_handle_t* handle) {
  struct polled* polled = (struct polled*) handle;
  for (int i = 0; i < 2; i++) if (polled->fds[i] >= 0) close(polled->fds[i]);
  awaited--;
  free(polled);
}
static void on_poll(uv_poll_t* poll, int status, int events) {
  struct polled* polled = (struct polled*) poll;
  say("poll %d round %d: %s %d active %d", polled->number, polled->rounds, name(status), events,
      uv_is_active((uv_handle_t*) poll));
  if (polled->rounds++ == 0 && status == 0 && polled->next != 0) {
    say("poll %d again %d: %s", polled->number, polled->next, name(uv_poll_start(poll, polled->next, on_poll)));
    return;
  }
  uv_poll_stop(poll);
  uv_close((uv_handle_t*) poll, on_poll_gone);
}

static void tcp_pair(int fds[2]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  fds[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(server, (struct sockaddr*) &at, size) != 0 || listen(server, 1) != 0 ||
      getsockname(server, (struct sockaddr*) &at, &size) != 0 || connect(fds[0], (struct sockaddr*) &at, size) != 0)
    abort();
  fds[1] = accept(server, NULL, NULL);
  close(server);
}

static void fill(int fd) {
  static char much[65536];
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  while (write(fd, much, sizeof much) > 0) {}
  while (write(fd, much, 1) > 0) {}
}

static void make_fds(unsigned form, int fds[2]) {
  int ends[2];
  fds[0] = fds[1] = -1;
  switch (form) {
    case 0: case 1: if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) abort(); break;
    case 2: tcp_pair(fds); break;
    case 3: if (pipe(fds) != 0) abort(); break;
    case 4:
      if (pipe(ends) != 0) abort();
      fds[0] = ends[1];
      fds[1] = ends[0];
      break;
    case 5: fds[0] = eventfd((unsigned) below(2), EFD_CLOEXEC); break;
    case 6: fds[0] = socket(AF_INET, SOCK_DGRAM, 0); break;
    case 7: fds[0] = socket(AF_INET, SOCK_STREAM, 0); break; /* neither connected nor listening */
  }
}

static int ready(int fd, int events, int wait) {
  struct pollfd asked = {.fd = fd, .events = (short) events};
  return poll(&asked, 1, wait ? -1 : 0) > 0;
}

/* What happens at the other end before the loop runs; it has arrived when this returns. */
static void meddle(unsigned form, int fds[2], unsigned what) {
  if (fds[1] < 0) return;
  if (what & 1) fill(fds[0]);
  if (form == 4) {
    if (what & 8) { close(fds[1]); fds[1] = -1; }
    return;
  }
  if (what & 2 && write(fds[1], "x", 1) == 1) ready(fds[0], POLLIN, 1);
  if (what & 16 && form == 2 && send(fds[1], "!", 1, MSG_OOB) == 1) ready(fds[0], POLLPRI, 1);
  if (what & 4 && form != 3 && shutdown(fds[1], SHUT_WR) == 0) ready(fds[0], POLLRDHUP, 1);
  if (what & 8) {
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (form == 2 && what & 32) setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fds[1]);
    fds[1] = -1;
    ready(fds[0], POLLRDHUP, 1);
  }
}

static short system_events(int mask) {
  return (short) ((mask & UV_READABLE ? POLLIN : 0) | (mask & UV_WRITABLE ? POLLOUT : 0) |
                  (mask & UV_DISCONNECT ? POLLRDHUP : 0) | (mask & UV_PRIORITIZED ? POLLPRI : 0));
}

static int told(int fd, int mask) { return mask != 0 && ready(fd, system_events(mask), 0); }

/* select(2) has no word for a hang-up to those who do not want to read, nor for an error to those who
 * want only urgent data: a library that waits with it cannot know. */
static int untold_by_select(int fd, int mask) {
  fd_set sets[3];
  struct timeval now = {0, 0};
  if (strcmp(poller, "select") != 0 || !told(fd, mask)) return 0;
  for (int i = 0; i < 3; i++) FD_ZERO(&sets[i]);
  if (mask & (UV_READABLE | UV_DISCONNECT)) FD_SET(fd, &sets[0]);
  if (mask & UV_WRITABLE) FD_SET(fd, &sets[1]);
  if (mask & UV_PRIORITIZED) FD_SET(fd, &sets[2]);
  return select(fd + 1, &sets[0], &sets[1], &sets[2], &now) == 0;
}

static void give_up_unready(void) {
  if (unready == NULL) return;
  say("poll %d stop: %s", unready->number, name(uv_poll_stop(&unready->poll)));
  uv_close((uv_handle_t*) &unready->poll, on_poll_gone);
  awaited++;
  unready = NULL;
}

static void on_second_gone(uv_handle_t* handle) {
  awaited--;
  free(handle);
}
static void second_poll(int number, int fd) {
  uv_poll_t* second = calloc(1, sizeof *second);
  int result = uv_poll_init(&loop, second, fd);
  say("poll %d twice: %s", number, name(result));
  if (result == 0) {
    uv_close((uv_handle_t*) second, on_second_gone);
    awaited++;
  } else {
    free(second);
  }
}

int poll_op(void) {
  struct polled* polled = calloc(1, sizeof *polled);
  unsigned form = below(8), what = below(64);
  int mask = (int) below(16), result;
  give_up_unready();
  polled->number = ++requests;
  polled->next = (int) below(16);
  make_fds(form, polled->fds);
  meddle(form, polled->fds, what);
  result = below(2) ? uv_poll_init(&loop, &polled->poll, polled->fds[0]) : uv_poll_init_socket(&loop, &polled->poll, polled->fds[0]);
  say("poll %d form %u what %u: %s", polled->number, form, what, name(result));
  if (below(8) == 0) second_poll(polled->number, polled->fds[0]);
  if (!told(polled->fds[0], polled->next) || untold_by_select(polled->fds[0], polled->next)) polled->next = 0;
  if (untold_by_select(polled->fds[0], mask)) mask = 0;
  result = uv_poll_start(&polled->poll, mask, on_poll);
  say("poll %d start %d: %s", polled->number, mask, name(result));
  if (below(8) == 0) second_poll(polled->number, polled->fds[0]);
  if (told(polled->fds[0], mask)) awaited++;
  else unready = polled;
  return 1;
}

/* Changes of files, in a directory that nobody else uses. */
static struct {
  uv_fs_event_t handles[3];
  int count, closing, number, stops[3];
} changes;

static void on_change(uv_fs_event_t* handle, const char* path, int events, int status) {
  long i = handle - changes.handles;
  say("changes %d watcher %ld: %s %d %s", changes.number, i, path ? path : "-", events, name(status));
  if (changes.stops[i]) say("changes %d stop %ld: %s", changes.number, i, name(uv_fs_event_stop(handle)));
}
static void on_change_gone(uv_handle_t* handle) {
  (void) handle;
  awaited--;
}
static void stop_changes(void) {
  for (int i = 0; i < changes.count; i++) uv_close((uv_handle_t*) &changes.handles[i], on_change_gone);
  awaited += changes.count;
  changes.count = 0;
}

static void start_changes(void) {
  /* Of a file watched by two names the original tells both watchers the name of the first. */
  const char* watched[] = {"watch", "watch/", "watch/missing", "watch/dir", below(2) ? "watch/a" : "watch/link"};
  changes.number++;
  mkdir("watch", 0755);
  mkdir("watch/dir", 0755);
  close(open("watch/a", O_CREAT | O_WRONLY, 0644));
  (void) !symlink("a", "watch/link");
  changes.count = 1 + (int) below(3);
  for (int i = 0; i < changes.count; i++) {
    const char* path = watched[below(5)];
    char text[64];
    size_t size = sizeof text;
    changes.stops[i] = below(4) == 0;
    uv_fs_event_init(&loop, &changes.handles[i]);
    say("changes %d watcher %d '%s': %s", changes.number, i, path, name(uv_fs_event_start(&changes.handles[i], on_change, path, 0)));
    say("  again: %s", name(uv_fs_event_start(&changes.handles[i], on_change, path, 0)));
    say("  path: %s %zu", name(uv_fs_event_getpath(&changes.handles[i], text, &size)), size);
  }
}

static void change(unsigned which) {
  int fd;
  switch (which) {
    case 0: close(open("watch/b", O_CREAT | O_WRONLY, 0644)); break;
    case 1: fd = open("watch/a", O_CREAT | O_WRONLY | O_APPEND, 0644); (void) !write(fd, "x", 1); close(fd); break;
    case 2: chmod("watch/a", 0600); break;
    case 3: rename("watch/a", "watch/c"); break;
    case 4: rename("watch/c", "watch/a"); break;
    case 5: unlink("watch/b"); break;
    case 6: mkdir("watch/new", 0755); rmdir("watch/new"); break;
    case 7: rename("watch/b", "outside"); break;
    case 8: rename("outside", "watch/a"); break;
    case 9: unlink("watch/a"); break;
    case 10: close(open("watch/dir/x", O_CREAT | O_WRONLY, 0644)); break;
    case 11: unlink("watch/dir/x"); rmdir("watch/dir"); break;
    case 12: (void) !truncate("watch/a", 0); break;
  }
}

int fs_event_op(void) {
  if (changes.count == 0) start_changes();
  else if (below(4) == 0) stop_changes();
  else
    for (unsigned count = 1 + below(3); count > 0; count--) {
      unsigned which = below(13);
      say("change %u", which);
      change(which);
    }
  return 1;
}

/* A file that is looked at again and again. It is not there at first, which is told; each change waits
 * until the one before was told. */
enum { CHANGES = 4 };
struct looked_at {
  uv_fs_poll_t poll;
  int number, phase, exists, plan[CHANGES];
  char path[32];
};
static void on_looked_gone(uv_handle_t* handle) {
  awaited--;
  free(handle);
}
static void on_look(uv_fs_poll_t* poll, int status, const uv_stat_t* before, const uv_stat_t* now) {
  struct looked_at* file = (struct looked_at*) poll;
  char fresh[40];
  int fd;
  say("look %d phase %d: %s, %llo %lld, %llo %lld", file->number, file->phase, name(status),
      (unsigned long long) before->st_mode, (long long) before->st_size, (unsigned long long) now->st_mode,
      (long long) now->st_size);
  if (file->phase == CHANGES) {
    say("look %d stop: %s", file->number, name(uv_fs_poll_stop(poll)));
    uv_close((uv_handle_t*) poll, on_looked_gone);
    return;
  }
  if (file->exists && file->plan[file->phase] == 0) {
    unlink(file->path);
    file->exists = 0;
  } else {
    snprintf(fresh, sizeof fresh, "%s.new", file->path);
    fd = open(fresh, O_CREAT | O_WRONLY, 0644);
    (void) !write(fd, bytes, (size_t) file->phase + 1);
    close(fd);
    rename(fresh, file->path);
    file->exists = 1;
  }
  file->phase++;
}

int fs_poll_op(void) {
  struct looked_at* file = calloc(1, sizeof *file);
  file->number = ++requests;
  snprintf(file->path, sizeof file->path, "look%d", file->number);
  for (int i = 0; i < CHANGES; i++) file->plan[i] = (int) below(2);
  uv_fs_poll_init(&loop, &file->poll);
  say("look %d: %s", file->number, name(uv_fs_poll_start(&file->poll, on_look, file->path, below(3))));
  awaited++;
  return 1;
}

void watchers_end(void) {
  give_up_unready();
  stop_changes();
}
