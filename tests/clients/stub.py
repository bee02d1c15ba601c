"""Stands for a server that the nursery of the tests bears: Emacs starts this, which is cheap.

    python -I -S stub.py -m MODULE ARGUMENT...

The server has this process's standard streams; this process ends as the server does, and the
nursery kills the server if this process is killed.
"""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as nursery:
    nursery.connect(os.environ["NURSERY"])
    wish = {"words": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}
    body = json.dumps(wish).encode("utf-8", "surrogateescape")
    socket.send_fds(nursery, [len(body).to_bytes(8, "big")], [0, 1, 2])
    nursery.sendall(body)
    os.closerange(0, 3)  # who holds a stream's other end shall see its end as soon as the server's
    _, code = map(int, nursery.makefile())
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
