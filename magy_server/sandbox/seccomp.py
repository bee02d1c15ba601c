"""This module writes the filter of system calls that a sandboxed program runs under.

The namespaces hold what a program may reach; the filter takes away what could break out of them by
a mistake in the kernel, and what they do not cover: new user namespaces, mounts, the kernel's
keys, putting characters into a terminal. Everything else is allowed.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping, Sequence

_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_EPERM, _ENOSYS = 0x00050001, 0x00050026
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in `struct seccomp_data`; arguments are 64 bits wide, the lower half first."""
_NEW_USER = 0x10000000
"""CLONE_NEWUSER."""
_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX."""
_VSOCK = 40
"""AF_VSOCK: sockets to the machine that this virtual one runs on. No namespace holds them."""

_ARCHITECTURES: Mapping[str, int] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_REFUSED: Mapping[str, Sequence[int]] = {
    "x86_64": (
        165, 166, 155, 161, 308, 428, 429, 430, 431, 432, 433, 442,  # mounts and namespaces
        248, 249, 250,  # keys
        321, 298, 323, 304, 438,  # bpf, perf, userfaultfd, handles, others' descriptors
        246, 320, 175, 313, 176, 169, 167, 168, 163, 179, 103, 212,  # the machine
    ),
    "aarch64": (
        40, 39, 41, 51, 268, 428, 429, 430, 431, 432, 433, 442,
        217, 218, 219,
        280, 241, 282, 265, 438,
        104, 294, 105, 273, 106, 142, 224, 225, 89, 60, 116, 18,
    ),
}  # fmt: skip
_CALLS: Mapping[str, tuple[int, int, int, int, int]] = {
    "x86_64": (56, 272, 435, 16, 41),
    "aarch64": (220, 97, 435, 29, 198),
}
"""clone, unshare, clone3, ioctl, socket."""


def filter_program(machine: str = "") -> bytes:
    """The filter for this machine as `struct sock_filter`s; b"" for one that is not known."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return b""
    clone, unshare, clone3, ioctl, socket = _CALLS[machine]
    program = [(_LOAD, 0, 0, _ARCHITECTURE), *_if(_EQUAL, _ARCHITECTURES[machine], unless=_ENOSYS)]
    program.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":
        program += _if(_AT_LEAST, _X32, then=_ENOSYS)
    for number in _REFUSED[machine]:
        program += _if(_EQUAL, number, then=_EPERM)
    # Its flags lie in memory, where no filter looks; libraries then use `clone`.
    program += _if(_EQUAL, clone3, then=_ENOSYS)
    for number, argument, test, values in (
        (clone, 0, _BITS, (_NEW_USER,)),
        (unshare, 0, _BITS, (_NEW_USER,)),
        (ioctl, 1, _EQUAL, _TERMINAL),
        (socket, 0, _EQUAL, (_VSOCK,)),
    ):
        block = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument)]
        for value in values:
            block += _if(test, value, then=_EPERM)
        block.append((_RETURN, 0, 0, _ALLOW))
        program += [(_EQUAL, 0, len(block), number), *block]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *one) for one in program)


def _if(
    test: int, value: int, then: int | None = None, unless: int | None = None
) -> list[tuple[int, int, int, int]]:
    """Returns an answer if the test holds, or unless it does."""
    if then is not None:
        return [(test, 0, 1, value), (_RETURN, 0, 0, then)]
    assert unless is not None
    return [(test, 1, 0, value), (_RETURN, 0, 0, unless)]
