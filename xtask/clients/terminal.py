"""Holds the other end of a terminal for a client: `terminal.py PROGRAM ARGS...`.

The client says READY, RESIZE, LINE and DONE; each time it gets what it waits for. The exit
status is the client's.
"""
import fcntl
import os
import pty
import struct
import sys
import termios


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    start, go = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        os.close(go)
        os.read(start, 1)
        os.close(start)
        os.execvp(sys.argv[1], sys.argv[1:])
    os.close(start)
    resize(terminal, 120, 40)
    os.close(go)
    answers = {
        b"READY": lambda: os.write(terminal, b"\x03"),
        b"RESIZE": lambda: resize(terminal, 90, 30),
        b"LINE": lambda: os.write(terminal, b"a line\n"),
        b"DONE": lambda: None,
    }
    said = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            # The kernel says EIO when the last one on the other side has gone.
            break
        if not data:
            break
        said += data
        for word in list(answers):
            if word in said:
                answers.pop(word)()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0 or answers:
        sys.stderr.write(said.decode(errors="replace"))
        sys.exit(status or 1)


main()
