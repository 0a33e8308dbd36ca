/* Terminals: a pseudo-terminal whose other side is in our hands. */
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "differ.h"

struct terminal {
  uv_tty_t tty;
  int master, number, expected;
  char typed[100];
};

static void on_gone(uv_handle_t* handle) {
  struct terminal* terminal = (struct terminal*) handle;
  if (terminal->master >= 0) close(terminal->master);
  awaited--;
  free(terminal);
}
static void on_read(uv_stream_t* stream, ssize_t nread, const uv_buf_t* buf) {
  struct terminal* terminal = (struct terminal*) stream;
  if (nread > 0) {
    strncat(terminal->typed, buf->base, (size_t) nread);
    terminal->expected -= (int) nread;
    if (terminal->expected > 0) return;
  }
  for (char* c = terminal->typed; *c != 0; c++) if (*c < ' ') *c = '|';
  say("terminal %d typed '%s' %s", terminal->number, terminal->typed, name((int) nread));
  uv_close((uv_handle_t*) stream, on_gone);
}

/* What the terminal is set to, as far as the modes change it. */
static void tell_mode(int number, int fd) {
  struct termios at;
  if (tcgetattr(fd, &at) != 0) abort();
  say("terminal %d flags %x %x %x %x", number, at.c_iflag, at.c_oflag, at.c_cflag, at.c_lflag);
}

int terminal_op(void) {
  struct terminal* terminal = calloc(1, sizeof *terminal);
  struct winsize size = {.ws_row = (unsigned short) (1 + below(50)), .ws_col = (unsigned short) (1 + below(100))};
  int slave, width = 0, height = 0, result;
  const char* line = (const char*[]){"word\n", "two words\n", "\n", "a\x7f" "b\n"}[below(4)];
  terminal->number = ++requests;
  if (openpty(&terminal->master, &slave, NULL, NULL, &size) != 0) abort();
  fcntl(terminal->master, F_SETFD, FD_CLOEXEC);
  say("terminal %d guess %d", terminal->number, uv_guess_handle(slave));
  result = uv_tty_init(&loop, &terminal->tty, slave, (int) below(2));
  say("terminal %d: %s", terminal->number, name(result));
  if (result != 0) abort();
  awaited++;
  say("  readable %d writable %d", uv_is_readable((uv_stream_t*) &terminal->tty), uv_is_writable((uv_stream_t*) &terminal->tty));
  result = uv_tty_get_winsize(&terminal->tty, &width, &height);
  say("  size: %s %d %d", name(result), width, height);
  for (unsigned count = below(3); count > 0; count--) {
    uv_tty_mode_t mode = (uv_tty_mode_t) below(5);
    say("  mode %d: %s", mode, name(uv_tty_set_mode(&terminal->tty, mode)));
    tell_mode(terminal->number, slave);
  }
  if (below(2)) {
    say("  reset: %s", name(uv_tty_reset_mode()));
    tell_mode(terminal->number, slave);
  }
  if (uv_is_writable((uv_stream_t*) &terminal->tty))
    say("  write: %d", uv_try_write((uv_stream_t*) &terminal->tty, &(uv_buf_t){.base = "out", .len = 3}, 1));
  switch (below(3)) {
    case 0: /* Somebody types. */
      uv_tty_set_mode(&terminal->tty, UV_TTY_MODE_NORMAL);
      terminal->expected = strchr(line, 0x7f) ? 2 : (int) strlen(line);
      (void) !write(terminal->master, line, strlen(line));
      result = uv_read_start((uv_stream_t*) &terminal->tty, on_alloc, on_read);
      say("  read: %s", name(result));
      if (result != 0) uv_close((uv_handle_t*) &terminal->tty, on_gone);
      break;
    case 1: /* The other side hangs up. */
      terminal->expected = 1;
      close(terminal->master);
      terminal->master = -1;
      result = uv_read_start((uv_stream_t*) &terminal->tty, on_alloc, on_read);
      say("  read: %s", name(result));
      if (result != 0) uv_close((uv_handle_t*) &terminal->tty, on_gone);
      break;
    default: uv_close((uv_handle_t*) &terminal->tty, on_gone); break;
  }
  close(slave);
  return 1;
}
