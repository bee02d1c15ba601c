"""`python ordinary.py COMMAND...`: runs it without the powers of root, also where root runs the
tests: the kernel then keeps from it what it keeps from any user."""

from __future__ import annotations

import ctypes
import os
import sys

_DROP = 24  # PR_CAPBSET_DROP
if sys.platform == "linux":
    for power in range(64):
        ctypes.CDLL(None).prctl(_DROP, power, 0, 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
