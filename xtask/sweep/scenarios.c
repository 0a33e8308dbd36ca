/* Scenarios that together call the whole interface. The rule for their authors: never rely on success. Every
 * result goes through TRY or `reported`; on the first error while the loop runs, all handles are closed. */
#include "sweep.h"
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define H(handle) ((uv_handle_t*) (handle))
#define S(handle) ((uv_stream_t*) (handle))

static char room[2 * 65536];
static int goals;
/* The scenario is over once so many things have happened. */
static void one_more(int of) {
  if (++goals < of) return;
  aim_reached();
  give_up();
}
static void give_room(uv_handle_t* handle, size_t size, uv_buf_t* buf) {
  (void) handle, (void) size;
  *buf = uv_buf_init(room, sizeof room);
}
static void on_write(uv_write_t* request, int status) {
  if (status == 0 && uv_write_nwritten(request) == 0) fault("a write succeeded without a byte");
  reported(request, status);
}
static uv_buf_t text(const char* bytes) { return uv_buf_init((char*) bytes, strlen(bytes)); }
static int write_text(uv_write_t* request, uv_stream_t* stream, const char* bytes) {
  uv_buf_t buf = text(bytes);
  int result = TRY(uv_write(request, stream, &buf, 1, on_write));
  if (result == 0) submitted(request);
  return result;
}

/* Streams: a server, a client, an echo, an end. */
static struct {
  union { uv_tcp_t tcp; uv_pipe_t pipe; } server, client, peer;
  uv_connect_t connect;
  uv_write_t writes[4];
  uv_shutdown_t shutdowns[2];
  uv_udp_t udp[2];
  int is_pipe;
} net;

static void on_shutdown(uv_shutdown_t* request, int status) { reported(request, status); }
static void end_of(uv_stream_t* stream, uv_shutdown_t* request) {
  if (TRY(uv_shutdown(request, stream, on_shutdown)) == 0) submitted(request);
}
static void on_peer_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) buf;
  if (count == UV_EOF) {
    end_of(stream, &net.shutdowns[1]);
    return;
  }
  if (note((int) count, "read") <= 0) return;
  room[count] = '\0';
  static char copy[sizeof room];
  strcpy(copy, room);
  write_text(&net.writes[2], stream, copy);
}
static size_t answered;
static void on_client_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) buf;
  if (count == UV_EOF) {
    TRY(uv_read_stop(stream));
    one_more(1);
    return;
  }
  if (note((int) count, "read") <= 0) return;
  if ((answered += count) == 12) end_of(stream, &net.shutdowns[0]);
}
static void on_connection(uv_stream_t* server, int status) {
  if (note(status, "connection") < 0) return;
  int made = net.is_pipe ? uv_pipe_init(loop, &net.peer.pipe, 0) : uv_tcp_init(loop, &net.peer.tcp);
  if (note(made, "init") < 0) return;
  if (TRY(uv_accept(server, S(&net.peer))) < 0) return;
  TRY(uv_read_start(S(&net.peer), give_room, on_peer_read));
}
static void on_connect(uv_connect_t* request, int status) {
  reported(request, status);
  if (status < 0) return;
  uv_stream_t* stream = request->handle;
  uv_buf_t first = text("abcd");
  int tried = uv_try_write(stream, &first, 1);
  if (tried < 0 && tried != UV_EAGAIN && note(tried, "uv_try_write") < 0) return;
  if (tried != 4 && write_text(&net.writes[0], stream, "abcd" + (tried > 0 ? tried : 0)) < 0) return;
  uv_buf_t two[] = { text("efgh"), text("ijkl") };
  if (TRY(uv_write(&net.writes[1], stream, two, 2, on_write)) == 0) submitted(&net.writes[1]);
  TRY(uv_read_start(stream, give_room, on_client_read));
  TRY(uv_is_readable(stream) ? 0 : UV_EINVAL);
  TRY(uv_is_writable(stream) ? 0 : UV_EINVAL);
  uv_stream_get_write_queue_size(stream);
  struct sockaddr_storage address;
  int size = sizeof address;
  char name[108];
  size_t length = sizeof name;
  if (net.is_pipe) {
    TRY(uv_pipe_getpeername(&net.client.pipe, name, &length));
  } else {
    TRY(uv_tcp_getpeername(&net.client.tcp, (struct sockaddr*) &address, &size));
    TRY(uv_tcp_nodelay(&net.client.tcp, 1));
    TRY(uv_tcp_keepalive(&net.client.tcp, 1, 60));
    TRY(uv_tcp_keepalive_ex(&net.client.tcp, 1, 60, 5, 3));
  }
}
static void fresh(void) {
  memset(&net, 0, sizeof net);
  answered = 0;
  goals = 0;
}
static void tcp_over(const char* host, int version) {
  fresh();
  struct sockaddr_storage address;
  int size = sizeof address, value = 0;
  uv_os_fd_t fd;
  if (version == 4) TRY(uv_ip4_addr(host, 0, (struct sockaddr_in*) &address));
  else TRY(uv_ip6_addr(host, 0, (struct sockaddr_in6*) &address));
  if (TRY(uv_tcp_init_ex(loop, &net.server.tcp, version == 4 ? AF_INET : AF_UNSPEC)) < 0) return;
  if (TRY(uv_tcp_bind(&net.server.tcp, (struct sockaddr*) &address, 0)) < 0) return;
  TRY(uv_tcp_simultaneous_accepts(&net.server.tcp, 1));
  TRY(uv_fileno(H(&net.server), &fd));
  TRY(uv_recv_buffer_size(H(&net.server), &value));
  TRY(uv_send_buffer_size(H(&net.server), &value));
  if (TRY(uv_listen(S(&net.server), 8, on_connection)) < 0) return;
  if (TRY(uv_tcp_getsockname(&net.server.tcp, (struct sockaddr*) &address, &size)) < 0) return;
  if (TRY(uv_tcp_init(loop, &net.client.tcp)) < 0) return;
  if (TRY(uv_tcp_connect(&net.connect, &net.client.tcp, (struct sockaddr*) &address, on_connect)) == 0)
    submitted(&net.connect);
}
static void tcp_echo(void) { tcp_over("127.0.0.1", 4); }
static void tcp6_echo(void) { tcp_over("::1", 6); }

static void pipe_echo(void) {
  fresh();
  net.is_pipe = 1;
  char name[108];
  size_t length = sizeof name;
  const char* path = "sweep.sock";
  unlink(path);
  if (TRY(uv_pipe_init(loop, &net.server.pipe, 0)) < 0) return;
  if (TRY(uv_pipe_bind(&net.server.pipe, path)) < 0) return;
  TRY(uv_pipe_chmod(&net.server.pipe, UV_READABLE | UV_WRITABLE));
  TRY(uv_pipe_getsockname(&net.server.pipe, name, &length));
  uv_pipe_pending_instances(&net.server.pipe, 4);
  if (TRY(uv_listen(S(&net.server), 8, on_connection)) < 0) return;
  if (TRY(uv_pipe_init(loop, &net.client.pipe, 0)) < 0) return;
  submitted(&net.connect);
  uv_pipe_connect(&net.connect, &net.client.pipe, path, on_connect);
}
static void pipe2_echo(void) {
  fresh();
  net.is_pipe = 1;
  const char name[] = "\0sweep2";
  if (TRY(uv_pipe_init(loop, &net.server.pipe, 0)) < 0) return;
  if (TRY(uv_pipe_bind2(&net.server.pipe, name, sizeof name - 1, 0)) < 0) return;
  if (TRY(uv_listen(S(&net.server), 8, on_connection)) < 0) return;
  if (TRY(uv_pipe_init(loop, &net.client.pipe, 0)) < 0) return;
  if (TRY(uv_pipe_connect2(&net.connect, &net.client.pipe, name, sizeof name - 1, 0, on_connect)) == 0)
    submitted(&net.connect);
}

/* Descriptors that travel over a pair of sockets. */
static void on_ipc_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) buf;
  if (note((int) count, "read") <= 0) return;
  uv_pipe_t* pipe = (uv_pipe_t*) stream;
  while (uv_pipe_pending_count(pipe) > 0) {
    int udp = uv_pipe_pending_type(pipe) == UV_UDP;
    int made = udp ? uv_udp_init(loop, &net.udp[0]) : uv_tcp_init(loop, &net.peer.tcp);
    if (note(made, "init") < 0) return;
    if (TRY(uv_accept(stream, udp ? S(&net.udp[0]) : S(&net.peer))) < 0) return;
    one_more(1);
  }
}
static void ipc(void) {
  fresh();
  uv_os_sock_t pair[2];
  struct sockaddr_in address;
  uv_buf_t buf = text("x");
  TRY(uv_ip4_addr("127.0.0.1", 0, &address));
  if (TRY(uv_tcp_init(loop, &net.server.tcp)) < 0) return;
  if (TRY(uv_tcp_bind(&net.server.tcp, (struct sockaddr*) &address, 0)) < 0) return;
  if (TRY(uv_socketpair(SOCK_STREAM, 0, pair, UV_NONBLOCK_PIPE, UV_NONBLOCK_PIPE)) < 0) return;
  static uv_pipe_t ends[2];
  int opened[2] = { -1, -1 };
  for (int at = 0; at < 2; at++) {
    if (TRY(uv_pipe_init(loop, &ends[at], 1)) == 0) opened[at] = TRY(uv_pipe_open(&ends[at], pair[at]));
    if (opened[at] < 0) close(pair[at]);
  }
  if (opened[0] < 0 || opened[1] < 0) return;
  if (TRY(uv_read_start(S(&ends[1]), give_room, on_ipc_read)) < 0) return;
  int tried = uv_try_write2(S(&ends[0]), &buf, 1, S(&net.server));
  if (tried > 0) return;
  if (tried != UV_EAGAIN && note(tried, "uv_try_write2") < 0) return;
  if (TRY(uv_write2(&net.writes[0], S(&ends[0]), &buf, 1, S(&net.server), on_write)) == 0) submitted(&net.writes[0]);
}
static void ipc_write2(void) {
  fresh();
  uv_os_sock_t pair[2];
  static uv_pipe_t ends[2];
  uv_buf_t buf = text("x");
  struct sockaddr_in address;
  TRY(uv_ip4_addr("127.0.0.1", 0, &address));
  if (TRY(uv_udp_init(loop, &net.udp[1])) < 0) return;
  if (TRY(uv_udp_bind(&net.udp[1], (struct sockaddr*) &address, 0)) < 0) return;
  if (TRY(uv_socketpair(SOCK_STREAM, 0, pair, UV_NONBLOCK_PIPE, UV_NONBLOCK_PIPE)) < 0) return;
  int opened[2] = { -1, -1 };
  for (int at = 0; at < 2; at++) {
    if (TRY(uv_pipe_init(loop, &ends[at], 1)) == 0) opened[at] = TRY(uv_pipe_open(&ends[at], pair[at]));
    if (opened[at] < 0) close(pair[at]);
  }
  if (opened[0] < 0 || opened[1] < 0) return;
  if (TRY(uv_read_start(S(&ends[1]), give_room, on_ipc_read)) < 0) return;
  if (TRY(uv_write2(&net.writes[0], S(&ends[0]), &buf, 1, S(&net.udp[1]), on_write)) == 0) submitted(&net.writes[0]);
}
static void on_pipe_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) stream, (void) buf;
  if (count == UV_EOF) one_more(1);
  else if (note((int) count, "read") > 0) uv_close(H(&net.client), NULL);
}
static void plain_pipe(void) {
  fresh();
  uv_file fds[2];
  if (TRY(uv_pipe(fds, UV_NONBLOCK_PIPE, UV_NONBLOCK_PIPE)) < 0) return;
  int opened[2] = { -1, -1 };
  uv_pipe_t* ends[] = { &net.server.pipe, &net.client.pipe };
  for (int at = 0; at < 2; at++) {
    if (TRY(uv_pipe_init(loop, ends[at], 0)) == 0) opened[at] = TRY(uv_pipe_open(ends[at], fds[at]));
    if (opened[at] < 0) close(fds[at]);
  }
  if (opened[0] < 0 || opened[1] < 0) return;
  if (TRY(uv_read_start(S(ends[0]), give_room, on_pipe_read)) < 0) return;
  TRY(uv_stream_set_blocking(S(ends[1]), 0));
  write_text(&net.writes[0], S(ends[1]), "hello");
}
static void tcp_open_reset(void) {
  fresh();
  int fds[2];
  if (TRY(uv_tcp_init(loop, &net.client.tcp)) < 0) return;
  fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (TRY(uv_tcp_open(&net.client.tcp, fds[0])) < 0) close(fds[0]);
  else TRY(uv_tcp_close_reset(&net.client.tcp, NULL));
  aim_reached();
}

/* Datagrams. */
static uv_udp_send_t sends[4];
static void on_send(uv_udp_send_t* request, int status) { reported(request, status); }
static int datagrams;
static void on_datagram(uv_udp_t* udp, ssize_t count, const uv_buf_t* buf, const struct sockaddr* from, unsigned flags) {
  (void) udp, (void) buf, (void) from, (void) flags;
  if (note((int) count, "datagram") > 0 && ++datagrams == 2) {
    TRY(uv_udp_recv_stop(&net.udp[0]));
    one_more(1);
  }
}
static void on_udp_patience(uv_timer_t* timer) {
  /* A datagram whose sending failed does not come; this is how a program learns of it. */
  (void) timer;
  give_up();
}
static void udp_with(unsigned flags) {
  fresh();
  datagrams = 0;
  static uv_timer_t resend;
  struct sockaddr_in address;
  int size = sizeof address;
  uv_buf_t buf = text("datagram");
  TRY(uv_ip4_addr("127.0.0.1", 0, &address));
  if (TRY(uv_udp_init_ex(loop, &net.udp[0], AF_INET | flags)) < 0) return;
  if (TRY(uv_udp_bind(&net.udp[0], (struct sockaddr*) &address, UV_UDP_REUSEADDR)) < 0) return;
  uv_udp_using_recvmmsg(&net.udp[0]);
  if (TRY(uv_udp_getsockname(&net.udp[0], (struct sockaddr*) &address, &size)) < 0) return;
  TRY(uv_udp_set_broadcast(&net.udp[0], 1));
  TRY(uv_udp_set_ttl(&net.udp[0], 32));
  TRY(uv_udp_set_multicast_ttl(&net.udp[0], 32));
  TRY(uv_udp_set_multicast_loop(&net.udp[0], 1));
  TRY(uv_udp_set_multicast_interface(&net.udp[0], "127.0.0.1"));
  TRY(uv_udp_set_membership(&net.udp[0], "239.255.0.1", "127.0.0.1", UV_JOIN_GROUP));
  TRY(uv_udp_set_membership(&net.udp[0], "239.255.0.1", "127.0.0.1", UV_LEAVE_GROUP));
  TRY(uv_udp_set_source_membership(&net.udp[0], "232.1.1.1", "127.0.0.1", "127.0.0.1", UV_JOIN_GROUP));
  if (TRY(uv_udp_recv_start(&net.udp[0], give_room, on_datagram)) < 0) return;
  if (TRY(uv_udp_init(loop, &net.udp[1])) < 0) return;
  if (TRY(uv_udp_send(&sends[0], &net.udp[1], &buf, 1, (struct sockaddr*) &address, on_send)) < 0) return;
  submitted(&sends[0]);
  uv_udp_get_send_queue_size(&net.udp[1]);
  uv_udp_get_send_queue_count(&net.udp[1]);
  if (TRY(uv_timer_init(loop, &resend)) == 0) TRY(uv_timer_start(&resend, on_udp_patience, 2000, 0));
  uv_unref(H(&resend));
  if (TRY(uv_udp_send(&sends[1], &net.udp[1], &buf, 1, (struct sockaddr*) &address, on_send)) == 0) submitted(&sends[1]);
}
static void udp(void) { udp_with(0); }
static void udp_mmsg(void) { udp_with(UV_UDP_RECVMMSG); }
static void udp_connected(void) {
  fresh();
  datagrams = 0;
  struct sockaddr_in address;
  int size = sizeof address;
  uv_buf_t buf = text("datagram"), *bufs[] = { &buf };
  unsigned counts[] = { 1 };
  TRY(uv_ip4_addr("127.0.0.1", 0, &address));
  if (TRY(uv_udp_init(loop, &net.udp[0])) < 0) return;
  if (TRY(uv_udp_bind(&net.udp[0], (struct sockaddr*) &address, 0)) < 0) return;
  if (TRY(uv_udp_getsockname(&net.udp[0], (struct sockaddr*) &address, &size)) < 0) return;
  if (TRY(uv_udp_recv_start(&net.udp[0], give_room, on_datagram)) < 0) return;
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (TRY(uv_udp_init(loop, &net.udp[1])) < 0) { close(fd); return; }
  if (TRY(uv_udp_open(&net.udp[1], fd)) < 0) { close(fd); return; }
  if (TRY(uv_udp_connect(&net.udp[1], (struct sockaddr*) &address)) < 0) return;
  TRY(uv_udp_getpeername(&net.udp[1], (struct sockaddr*) &address, &size));
  TRY(uv_udp_try_send(&net.udp[1], &buf, 1, NULL));
  TRY(uv_udp_try_send2(&net.udp[1], 1, bufs, counts, NULL, 0));
}

/* Children. */
static struct { uv_process_t process; uv_pipe_t in, out; uv_write_t write; int fd; } child;
static void on_exit_of(uv_process_t* process, int64_t status, int signal) {
  (void) process, (void) status, (void) signal;
  one_more(2);
}
static void on_child_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) stream, (void) buf;
  if (count == UV_EOF) one_more(2);
  else if (note((int) count, "read") > 0) uv_close(H(&child.in), NULL);
}
static void spawn_cat(void) {
  fresh();
  memset(&child, 0, sizeof child);
  char* args[] = { "cat", NULL };
  char* env[] = { "PATH=/nowhere:/bin:/usr/bin", NULL };
  uv_stdio_container_t stdio[3] = {
    { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = S(&child.in) },
    { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = S(&child.out) },
    { .flags = UV_INHERIT_FD, .data.fd = 2 },
  };
  uv_process_options_t options = { .file = "cat", .args = args, .env = env, .cwd = "/", .stdio = stdio,
    .stdio_count = 3, .exit_cb = on_exit_of };
  if (TRY(uv_pipe_init(loop, &child.in, 0)) < 0) return;
  if (TRY(uv_pipe_init(loop, &child.out, 0)) < 0) return;
  if (TRY(uv_spawn(loop, &child.process, &options)) < 0) return;
  uv_process_get_pid(&child.process);
  if (TRY(uv_read_start(S(&child.out), give_room, on_child_read)) < 0) return;
  write_text(&child.write, S(&child.in), "hello");
}
static void spawn_killed(void) {
  fresh();
  goals = 1;
  memset(&child, 0, sizeof child);
  char* args[] = { "/bin/sleep", "1", NULL };
  uv_process_options_t options = { .file = args[0], .args = args, .exit_cb = on_exit_of,
    .flags = UV_PROCESS_DETACHED | UV_PROCESS_SETUID | UV_PROCESS_SETGID, .uid = getuid(), .gid = getgid() };
  uv_disable_stdio_inheritance();
  if (TRY(uv_spawn(loop, &child.process, &options)) < 0) return;
  if (TRY(uv_process_kill(&child.process, SIGTERM)) < 0) uv_kill(child.process.pid, SIGKILL);
}

/* Signals. */
static uv_signal_t signals[2];
static void on_signal(uv_signal_t* handle, int number) {
  (void) number;
  if (handle == &signals[0]) TRY(uv_signal_stop(handle));
  one_more(2);
}
static void signals_sent(void) {
  fresh();
  if (TRY(uv_signal_init(loop, &signals[0])) < 0 || TRY(uv_signal_init(loop, &signals[1])) < 0) return;
  if (TRY(uv_signal_start(&signals[0], on_signal, SIGUSR1)) < 0) return;
  if (TRY(uv_signal_start_oneshot(&signals[1], on_signal, SIGUSR2)) < 0) return;
  TRY(uv_kill(getpid(), SIGUSR1));
  TRY(uv_kill(getpid(), SIGUSR2));
}

/* Descriptors, terminals, watched files. */
static uv_poll_t poll_handle;
static int poll_fds[2];
static void close_poll_fds(uv_handle_t* handle) {
  (void) handle;
  close(poll_fds[0]);
  close(poll_fds[1]);
}
static void on_poll(uv_poll_t* handle, int status, int events) {
  (void) events;
  if (note(status, "poll") < 0) return;
  TRY(uv_poll_stop(handle));
  aim_reached();
}
static void polled(void) {
  fresh();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, poll_fds) != 0) return;
  static uv_poll_t second;
  if (TRY(uv_poll_init(loop, &poll_handle, poll_fds[0])) < 0) { close_poll_fds(NULL); return; }
  if (TRY(uv_poll_init_socket(loop, &second, poll_fds[1])) == 0) uv_close(H(&second), NULL);
  if (TRY(uv_poll_start(&poll_handle, UV_WRITABLE | UV_READABLE, on_poll)) == 0) uv_run(loop, UV_RUN_DEFAULT);
  uv_close(H(&poll_handle), NULL);
  uv_run(loop, UV_RUN_NOWAIT);
  close_poll_fds(NULL);
}
static uv_tty_t tty;
static void on_tty_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buf) {
  (void) stream, (void) buf;
  if (note((int) count, "read") > 0) one_more(1);
}
static void terminal(void) {
  fresh();
  int master, slave, width, height;
  uv_tty_vtermstate_t state;
  if (openpty(&master, &slave, NULL, NULL, NULL) != 0) return;
  uv_guess_handle(slave);
  int made = TRY(uv_tty_init(loop, &tty, slave, 0));
  if (made == 0) {
    TRY(uv_tty_set_mode(&tty, UV_TTY_MODE_RAW));
    TRY(uv_tty_get_winsize(&tty, &width, &height));
    uv_tty_set_vterm_state(UV_TTY_SUPPORTED);
    uv_tty_get_vterm_state(&state);
    if (TRY(uv_read_start(S(&tty), give_room, on_tty_read)) == 0) {
      write_text(&net.writes[0], S(&tty), "out");
      if (write(master, "in\n", 3) == 3) uv_run(loop, UV_RUN_ONCE);
    }
    uv_run(loop, UV_RUN_NOWAIT);
    TRY(uv_tty_reset_mode());
    give_up();
    uv_run(loop, UV_RUN_DEFAULT);
  }
  close(master);
  close(slave);
  aim_reached();
}
static uv_fs_event_t watched;
static uv_fs_poll_t sampled;
static void on_watched(uv_fs_event_t* handle, const char* name, int events, int status) {
  (void) name, (void) events;
  if (note(status, "fs_event") < 0) return;
  TRY(uv_fs_event_stop(handle));
  one_more(1);
}
static void on_sampled(uv_fs_poll_t* handle, int status, const uv_stat_t* old, const uv_stat_t* now) {
  (void) handle, (void) old, (void) now;
  note(status, "fs_poll");
}
static void watching(void) {
  fresh();
  char path[256];
  size_t size = sizeof path;
  mkdir("watched", 0700);
  if (TRY(uv_fs_event_init(loop, &watched)) < 0 || TRY(uv_fs_poll_init(loop, &sampled)) < 0) return;
  if (TRY(uv_fs_poll_start(&sampled, on_sampled, "watched", 20)) < 0) return;
  TRY(uv_fs_poll_getpath(&sampled, path, &size));
  if (TRY(uv_fs_event_start(&watched, on_watched, "watched", 0)) < 0) return;
  size = sizeof path;
  TRY(uv_fs_event_getpath(&watched, path, &size));
  int fd = open("watched/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  close(fd);
  unlink("watched/file");
  if (TRY(uv_fs_poll_stop(&sampled)) == 0) TRY(uv_fs_poll_start(&sampled, on_sampled, "watched", 20));
}

/* The loop's own handles. */
static struct { uv_timer_t timer; uv_idle_t idle; uv_prepare_t prepare; uv_check_t check; uv_async_t async; uv_thread_t thread; int sent; } own;
static void on_timer(uv_timer_t* timer) { TRY(uv_timer_stop(timer)); one_more(5); }
static void on_idle(uv_idle_t* idle) { TRY(uv_idle_stop(idle)); one_more(5); }
static void on_prepare(uv_prepare_t* prepare) { TRY(uv_prepare_stop(prepare)); one_more(5); }
static void on_check(uv_check_t* check) { TRY(uv_check_stop(check)); one_more(5); }
static void on_async(uv_async_t* async) { (void) async; one_more(5); }
static void send_async(void* unused) { (void) unused; uv_async_send(&own.async); }
static void own_handles(void) {
  fresh();
  memset(&own, 0, sizeof own);
  uv_metrics_t metrics;
  TRY(uv_loop_configure(loop, UV_METRICS_IDLE_TIME));
  uv_backend_fd(loop);
  if (TRY(uv_timer_init(loop, &own.timer)) < 0 || TRY(uv_timer_start(&own.timer, on_timer, 2, 2)) < 0) return;
  TRY(uv_timer_again(&own.timer));
  uv_timer_set_repeat(&own.timer, 2);
  uv_timer_get_repeat(&own.timer);
  uv_timer_get_due_in(&own.timer);
  if (TRY(uv_idle_init(loop, &own.idle)) < 0 || TRY(uv_idle_start(&own.idle, on_idle)) < 0) return;
  if (TRY(uv_prepare_init(loop, &own.prepare)) < 0 || TRY(uv_prepare_start(&own.prepare, on_prepare)) < 0) return;
  if (TRY(uv_check_init(loop, &own.check)) < 0 || TRY(uv_check_start(&own.check, on_check)) < 0) return;
  if (TRY(uv_async_init(loop, &own.async, on_async)) < 0) return;
  uv_ref(H(&own.timer));
  uv_has_ref(H(&own.timer));
  uv_is_active(H(&own.timer));
  uv_update_time(loop);
  uv_now(loop);
  uv_backend_timeout(loop);
  uv_loop_alive(loop);
  TRY(uv_metrics_info(loop, &metrics));
  uv_metrics_idle_time(loop);
  if (TRY(uv_thread_create(&own.thread, send_async, NULL)) == 0) TRY(uv_thread_join(&own.thread));
}
static void forked(void) {
  fresh();
  static uv_timer_t timer;
  if (TRY(uv_timer_init(loop, &timer)) < 0) return;
  uv_run(loop, UV_RUN_NOWAIT);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    int result = uv_loop_fork(loop);
    uv_run(loop, UV_RUN_NOWAIT);
    _exit(result == 0 ? 0 : 7);
  }
  int status;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 7) note(UV_EIO, "uv_loop_fork");
  else if (!WIFEXITED(status)) return;
  aim_reached();
}
static void other_loops(void) {
  fresh();
  uv_loop_t* another = uv_default_loop();
  if (note(another == NULL ? UV_ENOMEM : 0, "uv_default_loop") == 0) {
    uv_run(another, UV_RUN_DEFAULT);
    TRY(uv_loop_close(another));
  }
  aim_reached();
}

/* The pool. */
static struct { uv_work_t work[2]; uv_random_t random; uv_getaddrinfo_t look_up; uv_getnameinfo_t name; char bytes[16]; } pool;
static void work(uv_work_t* request) { (void) request; }
static void on_work(uv_work_t* request, int status) { reported(request, status == UV_ECANCELED ? 0 : status); one_more(5); }
static void on_random(uv_random_t* request, int status, void* bytes, size_t size) { (void) bytes, (void) size; reported(request, status); one_more(5); }
static void on_addresses(uv_getaddrinfo_t* request, int status, struct addrinfo* list) { reported(request, status); uv_freeaddrinfo(list); one_more(5); }
static void on_name(uv_getnameinfo_t* request, int status, const char* host, const char* service) { (void) host, (void) service; reported(request, status); one_more(5); }
static void pooled(void) {
  fresh();
  struct sockaddr_in address;
  TRY(uv_ip4_addr("127.0.0.1", 80, &address));
  for (int at = 0; at < 2; at++) {
    if (TRY(uv_queue_work(loop, &pool.work[at], work, on_work)) < 0) return;
    submitted(&pool.work[at]);
  }
  uv_cancel((uv_req_t*) &pool.work[1]);
  if (TRY(uv_random(loop, &pool.random, pool.bytes, 16, 0, on_random)) < 0) return;
  submitted(&pool.random);
  if (TRY(uv_getaddrinfo(loop, &pool.look_up, on_addresses, "localhost", "80", NULL)) < 0) return;
  submitted(&pool.look_up);
  if (TRY(uv_getnameinfo(loop, &pool.name, on_name, (struct sockaddr*) &address, NI_NUMERICHOST)) < 0) return;
  submitted(&pool.name);
}

/* Files: the same calls at once, by the pool, and on a ring. */
static uv_fs_t files[64];
static int file_at, files_async;
static uv_file opened;
static void on_file(uv_fs_t* request) {
  int result = (int) request->result;
  if (request->fs_type == UV_FS_OPEN || request->fs_type == UV_FS_MKSTEMP) opened = result;
  if (result >= 0 && request->fs_type == UV_FS_SCANDIR) { uv_dirent_t entry; while (uv_fs_scandir_next(request, &entry) == 0) {} }
  reported(request, result);
}
/* One file request to its end: its result. */
#define FILE_DO(call, ...) \
  (memset(&files[file_at], 0, sizeof *files), \
   file_result(call(loop, &files[file_at], ##__VA_ARGS__, files_async ? on_file : NULL), #call))
static void* file_pointer;
static int file_result(int result, const char* what) {
  uv_fs_t* request = &files[file_at];
  if (!files_async) {
    note(result, what);
    if (result >= 0 && request->fs_type == UV_FS_SCANDIR) { uv_dirent_t entry; while (uv_fs_scandir_next(request, &entry) == 0) {} }
  } else if (note(result, what) == 0) {
    submitted(request);
    uv_run(loop, UV_RUN_DEFAULT);
    result = (int) request->result;
  }
  file_pointer = request->ptr;
  int is_dir = request->fs_type == UV_FS_OPENDIR;
  uv_dir_t* dir = is_dir && result == 0 ? request->ptr : NULL;
  uv_fs_req_cleanup(request);
  file_pointer = dir;
  file_at = (file_at + 1) % 64;
  return result;
}
static void all_files(int async) {
  fresh();
  files_async = async;
  static char bytes[16];
  uv_buf_t buf = uv_buf_init("0123456789", 10), into = uv_buf_init(bytes, sizeof bytes);
  FILE_DO(uv_fs_mkdir, "sd", 0700);
  int fd = FILE_DO(uv_fs_open, "sd/f", O_RDWR | O_CREAT, 0600);
  if (fd >= 0) {
    FILE_DO(uv_fs_write, fd, &buf, 1, 0);
    FILE_DO(uv_fs_write, fd, &buf, 1, -1);
    FILE_DO(uv_fs_read, fd, &into, 1, 0);
    uv_buf_t two[] = { uv_buf_init(bytes, 4), uv_buf_init(bytes + 4, 4) };
    FILE_DO(uv_fs_read, fd, two, 2, -1);
    FILE_DO(uv_fs_read, fd, two, 2, 0);
    FILE_DO(uv_fs_write, fd, two, 2, 0);
    FILE_DO(uv_fs_fsync, fd);
    FILE_DO(uv_fs_fdatasync, fd);
    FILE_DO(uv_fs_ftruncate, fd, 8);
    FILE_DO(uv_fs_fstat, fd);
    FILE_DO(uv_fs_fchmod, fd, 0600);
    FILE_DO(uv_fs_fchown, fd, -1, -1);
    FILE_DO(uv_fs_futime, fd, 1.0, 2.0);
    int to = FILE_DO(uv_fs_open, "sd/g", O_RDWR | O_CREAT, 0600);
    if (to >= 0) {
      FILE_DO(uv_fs_sendfile, to, fd, 0, 8);
      FILE_DO(uv_fs_close, to);
    }
    FILE_DO(uv_fs_close, fd);
  }
  struct stat copied, original;
  if (FILE_DO(uv_fs_copyfile, "sd/f", "sd/copy", 0) == 0 && stat("sd/f", &original) == 0)
    if (stat("sd/copy", &copied) != 0 || copied.st_size != original.st_size) fault("a copy is not whole");
  FILE_DO(uv_fs_rename, "sd/copy", "sd/moved");
  FILE_DO(uv_fs_link, "sd/f", "sd/link");
  FILE_DO(uv_fs_symlink, "f", "sd/sym", 0);
  FILE_DO(uv_fs_access, "sd/f", R_OK);
  FILE_DO(uv_fs_readlink, "sd/sym");
  FILE_DO(uv_fs_realpath, "sd/sym");
  FILE_DO(uv_fs_stat, "sd/f");
  FILE_DO(uv_fs_lstat, "sd/sym");
  FILE_DO(uv_fs_statfs, "sd/f");
  FILE_DO(uv_fs_chmod, "sd/f", 0600);
  FILE_DO(uv_fs_chown, "sd/f", -1, -1);
  FILE_DO(uv_fs_lchown, "sd/sym", -1, -1);
  FILE_DO(uv_fs_utime, "sd/f", 1.0, 2.0);
  FILE_DO(uv_fs_lutime, "sd/sym", 1.0, 2.0);
  FILE_DO(uv_fs_scandir, "sd", 0);
  if (FILE_DO(uv_fs_opendir, "sd") == 0) {
    uv_dir_t* dir = file_pointer;
    uv_dirent_t entries[4];
    dir->dirents = entries;
    dir->nentries = 4;
    FILE_DO(uv_fs_readdir, dir);
    FILE_DO(uv_fs_closedir, dir);
  }
  int temporary = FILE_DO(uv_fs_mkstemp, "sd/tXXXXXX");
  if (temporary >= 0) FILE_DO(uv_fs_close, temporary);
  FILE_DO(uv_fs_mkdtemp, "sd/dXXXXXX");
  FILE_DO(uv_fs_mkdir, "sd/sub", 0700);
  FILE_DO(uv_fs_rmdir, "sd/sub");
  FILE_DO(uv_fs_unlink, "sd/f");
  if (system("rm -rf sd") == 0) aim_reached();
}
static void files_at_once(void) { all_files(0); }
static void files_by_pool(void) { all_files(1); }
static void files_by_ring(void) {
  setenv("UV_USE_IO_URING", "1", 1);
  TRY(uv_loop_configure(loop, UV_LOOP_USE_IO_URING_SQPOLL));
  all_files(1);
}

/* What the system says about itself. */
static void system_facts(void) {
  fresh();
  char bytes[4096];
  size_t size = sizeof bytes;
  int count;
  uv_cpu_info_t* cpus;
  uv_interface_address_t* interfaces;
  uv_passwd_t user;
  uv_group_t group;
  uv_env_item_t* environment;
  uv_rusage_t usage;
  uv_utsname_t system_name;
  uv_timeval64_t time;
  uv_timespec64_t spec;
  double load[3], up;
  if (TRY(uv_cpu_info(&cpus, &count)) == 0) uv_free_cpu_info(cpus, count);
  if (TRY(uv_interface_addresses(&interfaces, &count)) == 0) uv_free_interface_addresses(interfaces, count);
  if (TRY(uv_os_get_passwd(&user)) == 0) uv_os_free_passwd(&user);
  if (TRY(uv_os_get_passwd2(&user, getuid())) == 0) uv_os_free_passwd(&user);
  if (TRY(uv_os_get_group(&group, getgid())) == 0) uv_os_free_group(&group);
  if (TRY(uv_os_environ(&environment, &count)) == 0) uv_os_free_environ(environment, count);
  TRY(uv_os_setenv("SWEEP", "1"));
  size = sizeof bytes; uv_os_getenv("SWEEP", bytes, &size);
  TRY(uv_os_unsetenv("SWEEP"));
  size = sizeof bytes; TRY(uv_os_homedir(bytes, &size));
  unsetenv("HOME");
  size = sizeof bytes; TRY(uv_os_homedir(bytes, &size));
  size = sizeof bytes; TRY(uv_os_tmpdir(bytes, &size));
  size = sizeof bytes; TRY(uv_os_gethostname(bytes, &size));
  size = sizeof bytes; TRY(uv_cwd(bytes, &size));
  TRY(uv_chdir("."));
  size = sizeof bytes; TRY(uv_exepath(bytes, &size));
  TRY(uv_os_uname(&system_name));
  TRY(uv_os_getpriority(0, &count));
  TRY(uv_os_setpriority(0, count));
  TRY(uv_getrusage(&usage));
  TRY(uv_getrusage_thread(&usage));
  TRY(uv_gettimeofday(&time));
  TRY(uv_clock_gettime(UV_CLOCK_REALTIME, &spec));
  TRY(uv_uptime(&up));
  TRY(uv_resident_set_memory(&size));
  TRY(uv_random(NULL, NULL, bytes, 16, 0, NULL));
  size = sizeof bytes; TRY(uv_if_indextoname(1, bytes, &size));
  size = sizeof bytes; TRY(uv_if_indextoiid(1, bytes, &size));
  uv_loadavg(load);
  uv_get_free_memory(); uv_get_total_memory(); uv_get_constrained_memory(); uv_get_available_memory();
  uv_available_parallelism(); uv_hrtime(); uv_os_getpid(); uv_os_getppid(); uv_sleep(1);
  uv_lib_t library;
  if (uv_dlopen(NULL, &library) == 0) { void* address; uv_dlsym(&library, "uv_run", &address); }
  uv_dlerror(&library);
  uv_dlclose(&library);
  if (uv_dlopen("/there is none", &library) == 0) fault("a library was found where there is none");
  uv_dlerror(&library);
  uv_dlclose(&library);
  FILE* null = fopen("/dev/null", "w");
  uv_print_all_handles(loop, null);
  uv_print_active_handles(loop, null);
  fclose(null);
  aim_reached();
}

/* Threads and what they wait for. */
static uv_once_t once = UV_ONCE_INIT;
static void nothing(void) {}
static void thread_body(void* semaphore) { uv_sem_post(semaphore); }
static void threads(void) {
  fresh();
  uv_mutex_t mutex;
  uv_rwlock_t lock;
  uv_cond_t condition;
  uv_barrier_t barrier;
  uv_sem_t semaphore;
  uv_key_t key;
  uv_thread_t thread;
  char name[32], mask[2048];
  int priority;
  uv_once(&once, nothing);
  if (TRY(uv_mutex_init_recursive(&mutex)) == 0) uv_mutex_destroy(&mutex);
  if (TRY(uv_rwlock_init(&lock)) == 0) {
    uv_rwlock_rdlock(&lock); uv_rwlock_rdunlock(&lock);
    if (uv_rwlock_tryrdlock(&lock) == 0) uv_rwlock_rdunlock(&lock);
    uv_rwlock_wrlock(&lock); uv_rwlock_wrunlock(&lock);
    if (uv_rwlock_trywrlock(&lock) == 0) uv_rwlock_wrunlock(&lock);
    uv_rwlock_destroy(&lock);
  }
  if (TRY(uv_mutex_init(&mutex)) == 0) {
    uv_mutex_lock(&mutex);
    if (TRY(uv_cond_init(&condition)) == 0) {
      uv_cond_signal(&condition); uv_cond_broadcast(&condition);
      uv_cond_timedwait(&condition, &mutex, 1000);
      uv_cond_destroy(&condition);
    }
    uv_mutex_unlock(&mutex);
    if (uv_mutex_trylock(&mutex) == 0) uv_mutex_unlock(&mutex);
    uv_mutex_destroy(&mutex);
  }
  if (TRY(uv_barrier_init(&barrier, 1)) == 0) { uv_barrier_wait(&barrier); uv_barrier_destroy(&barrier); }
  if (TRY(uv_key_create(&key)) == 0) { uv_key_set(&key, &key); uv_key_get(&key); uv_key_delete(&key); }
  if (TRY(uv_sem_init(&semaphore, 0)) == 0) {
    uv_thread_options_t options = { .flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = 1 << 18 };
    if (TRY(uv_thread_create_ex(&thread, &options, thread_body, &semaphore)) == 0) {
      uv_sem_wait(&semaphore);
      TRY(uv_thread_join(&thread));
    }
    uv_sem_trywait(&semaphore);
    uv_sem_destroy(&semaphore);
  }
  thread = uv_thread_self();
  uv_thread_equal(&thread, &thread);
  TRY(uv_thread_setname("sweep"));
  TRY(uv_thread_getname(&thread, name, sizeof name));
  TRY(uv_thread_getpriority(thread, &priority));
  TRY(uv_thread_setpriority(thread, priority));
  TRY(uv_thread_getaffinity(&thread, mask, uv_cpumask_size()));
  TRY(uv_thread_setaffinity(&thread, mask, NULL, uv_cpumask_size()));
  uv_thread_getcpu();
  aim_reached();
}

const struct scenario scenarios[] = {
  { "tcp_echo", tcp_echo }, { "tcp6_echo", tcp6_echo }, { "pipe_echo", pipe_echo }, { "pipe2_echo", pipe2_echo },
  { "ipc", ipc }, { "ipc_write2", ipc_write2 }, { "plain_pipe", plain_pipe }, { "tcp_open_reset", tcp_open_reset },
  { "udp", udp }, { "udp_mmsg", udp_mmsg }, { "udp_connected", udp_connected }, { "spawn_cat", spawn_cat },
  { "spawn_killed", spawn_killed }, { "signals_sent", signals_sent }, { "polled", polled }, { "terminal", terminal },
  { "watching", watching }, { "watching_tree", watching_tree }, { "own_handles", own_handles }, { "forked", forked }, { "other_loops", other_loops },
  { "pooled", pooled }, { "files_at_once", files_at_once }, { "files_by_pool", files_by_pool },
  { "files_by_ring", files_by_ring }, { "system_facts", system_facts }, { "threads", threads },
  { "accessors", accessors }, { "conversions", conversions }, { "loops_made", loops_made }, { "titles", titles },
  { "detached", detached }, { "udp_adopted", udp_adopted }, { "tcp_bulk", tcp_bulk }, { "pipe_bulk", pipe_bulk }, { "ipc_bulk", ipc_bulk },
  { "recorded", recorded },
  { NULL, NULL },
};
