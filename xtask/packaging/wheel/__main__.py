"""Becomes the blacklight command that lies beside this file."""

import os
import signal
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "blacklight")
    # Python ignores these, and what is ignored stays so in the program that a process becomes.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(command, [command, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"blacklight: cannot run {command}: {error.strerror}")


if __name__ == "__main__":
    main()
