"""This separate program runs in a sandbox that has no network. It listens there, gives the
listening socket to Magy through the descriptor that it was started with, and becomes the program
that is to run: what connects there reaches the proxy of Magy, and nothing else."""

import os
import socket
import sys


def main() -> None:
    to, port, *argv = sys.argv[1:]
    with socket.socket() as listening, socket.socket(fileno=int(to)) as magy:
        listening.bind(("127.0.0.1", int(port)))
        listening.listen(128)
        socket.send_fds(magy, [b"+"], [listening.fileno()])
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
