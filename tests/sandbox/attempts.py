# ruff: noqa: E501
"""Ways out of a sandbox, as scripts. One that gets out says so (`OUT!`), shows the secret, changes
what is outside or what the project is run by, or leaves a process behind.

`alone`: only in sandboxes without the network of the machine. `bare`: it does get out where there
is no sandbox, and nothing on the machine suffers from that, which a test shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SYSCALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    found = libc.syscall(*words)
    print("OUT!" if found >= 0 else f"refused: {os.strerror(ctypes.get_errno())}")
"""


@dataclass(frozen=True)
class Attempt:
    script: str
    alone: bool = False
    bare: bool = False


def python(code: str, **more: bool) -> Attempt:
    return Attempt(f"python3 - <<'END'\nimport os, socket, sys\n{code}\nEND", **more)


def syscall(code: str) -> Attempt:
    return Attempt(f"python3 - <<'END'\n{SYSCALL}{code}\nEND")


def reaches(family: str, address: str, **more: bool) -> Attempt:
    code = (
        f"s = socket.socket(socket.{family}); s.settimeout(3); s.connect({address}); print('OUT!')"
    )
    return python(code, **more)


ATTEMPTS: Mapping[str, Attempt] = {
    # --- writing outside
    "write a file": Attempt("echo x > $OUT/target", bare=True),
    "make a file": Attempt("touch $OUT/new", bare=True),
    "append to it": Attempt("echo x >> $OUT/target", bare=True),
    "through dots": Attempt("echo x > $WS/../outside/target", bare=True),
    "through a link": Attempt("ln -s $OUT/target l; echo x > l", bare=True),
    "through a linked directory": Attempt("ln -s $OUT d; echo x > d/target", bare=True),
    "through a hard link": Attempt("ln $OUT/target l && echo x > l", bare=True),
    "rename into it": Attempt("echo x > n; mv n $OUT/target", bare=True),
    "rename out of it": Attempt("mv $OUT/target taken", bare=True),
    "exchange the two": python(
        "import ctypes; ctypes.CDLL(None).renameat2(-100, os.fsencode(os.environ['OUT']+'/target'),"
        " -100, b'magy.toml', 2)", bare=True,
    ),
    "remove it": Attempt("rm -rf $OUT/target", bare=True),
    "remove the directory": Attempt("rm -rf $OUT", bare=True),
    "change its mode": Attempt("chmod 777 $OUT/target", bare=True),
    "change its owner": Attempt("chown 1:1 $OUT/target", bare=True),
    "change its time": Attempt("touch -d 2001-01-01 $OUT/target", bare=True),
    "truncate it": python("os.truncate(os.environ['OUT'] + '/target', 0)", bare=True),
    "move the workspace": Attempt("mv $WS $WS.away && echo OUT!"),
    "make it beside the workspace": Attempt("mkdir $WS/../beside && echo OUT!"),
    "/proc/self/root": Attempt("echo x > /proc/self/root$OUT/target", bare=True),
    "/proc/1/root": Attempt("echo x > /proc/1/root$OUT/target"),
    "/proc/self/cwd": Attempt("echo x > /proc/self/cwd/../outside/target", bare=True),
    "a descriptor of a directory": python(
        "d = os.open(os.environ['OUT'], os.O_PATH); os.open('target', os.O_WRONLY|os.O_TRUNC, dir_fd=d)",
        bare=True,
    ),
    "reopen what was read": Attempt("exec 3< $OUT/target; echo x > /proc/self/fd/3", bare=True),
    "inherited descriptors": Attempt(
        "for f in /proc/self/fd/*; do case $(readlink $f) in pipe:*|/dev/null|/proc/*|'') ;;"
        " *) echo OUT! $(readlink $f);; esac; done"
    ),
    "by a background process": Attempt("(sleep 0.2; echo x > $OUT/target) & wait", bare=True),
    "the start-up files of the shell": Attempt("echo evil >> ~/.bashrc", bare=True),
    "Magy's settings": Attempt("echo x >> ~/.config/magy/magy.toml", bare=True),
    "a new file in the home": Attempt("touch ~/new && echo OUT!", bare=True),
    "the system": Attempt("touch /usr/bin/new /etc/new /var/new /opt/new 2>&1 | grep -v 'annot\\|not '"),
    "a library for all programs": Attempt("echo /tmp/evil.so > /etc/ld.so.preload && echo OUT!"),
    "a timer": Attempt("echo '* * * * * root x' > /etc/cron.d/evil && echo OUT!"),
    # --- other file systems, other roots, more power
    "remount": Attempt("mount -o remount,rw / && echo OUT!"),
    "remount by bind": Attempt("mount -o remount,bind,rw / && echo OUT!"),
    "bind": Attempt("mkdir m; mount --bind $OUT m && echo OUT!"),
    "mount in a new user namespace": Attempt("unshare -Urm mount -o remount,bind,rw / && echo OUT!"),
    "a new user namespace": Attempt("unshare -Ur true && echo OUT!"),
    "a new mount namespace": Attempt("unshare -m true && echo OUT!"),
    "another's mount namespace": Attempt("nsenter -t 1 -m true && echo OUT!"),
    "take off a cover": Attempt("umount ~/.ssh && echo OUT!"),
    "take off all covers": Attempt("umount -l / && echo OUT!"),
    "chroot": Attempt("chroot / true && echo OUT!"),
    "pivot_root": Attempt("mkdir p; pivot_root . p && echo OUT!"),
    "a sandbox in the sandbox": Attempt("bwrap --dev-bind / / true && echo OUT!"),
    "become root": Attempt("sudo -n true && echo OUT!; su root -c true </dev/null && test $EUID != 0 && echo OUT!"),
    "a device": Attempt("mknod d b 8 0 && echo OUT!"),
    "the memory of the machine": Attempt("head -c1 /dev/mem && echo OUT!; head -c1 /dev/kmem && echo OUT!"),
    "a setting of the kernel": Attempt("v=$(cat /proc/sys/kernel/core_pattern); echo \"$v\" > /proc/sys/kernel/core_pattern && echo OUT!"),
    "the magic key": Attempt("echo h > /proc/sysrq-trigger && echo OUT!"),
    "a control group": Attempt("mkdir /sys/fs/cgroup/*/evil /sys/fs/cgroup/evil 2>/dev/null; ls -d /sys/fs/cgroup/evil /sys/fs/cgroup/*/evil && echo OUT!"),
    "capabilities": Attempt("grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo OUT!"),
    "new privileges": Attempt("grep -q 'NoNewPrivs:.*0' /proc/self/status && echo OUT!", bare=True),
    "a user namespace by syscall": syscall("call(272, 0x10000000)"),
    "a user namespace by clone": syscall("call(56, 0x10000000 | 17, 0, 0, 0, 0)"),
    "clone3": syscall("call(435, 0, 0)"),
    "the new mount calls": syscall("call(428, -100, b'/', 1)"),
    "the kernel's keys": syscall("call(248, b'user', b'magy', b'x', 1, -3)"),
    "the keys of the session": syscall("call(250, 0, -3, 1)"),
    "bpf": syscall("call(321, 0, 0, 0)"),
    "a kernel module": syscall("call(313, 0, b'', 0)"),
    "files by handle": syscall("call(304, -100, b'', 0)"),
    # --- what the project is run by
    "a hook": Attempt("echo evil > .git/hooks/pre-commit", bare=True),
    "change a hook": Attempt("echo evil >> .git/hooks/commit-msg", bare=True),
    "a hook by rename": Attempt("echo evil > h; mv h .git/hooks/pre-commit", bare=True),
    "other hooks in their place": Attempt("mkdir h; mv .git/hooks o; mv h .git/hooks", bare=True),
    "no hooks": Attempt("rm -rf .git/hooks", bare=True),
    "another repository in its place": Attempt("mv .git .was; cp -r .was .git; echo evil > .git/hooks/x", bare=True),
    "a link in its place": Attempt("mv .git o; ln -s o .git", bare=True),
    "its configuration": Attempt("echo '[core] pager = evil' >> .git/config", bare=True),
    "its configuration by git": Attempt("git config core.pager evil", bare=True),
    "its configuration by rename": Attempt("cp .git/config c; mv -f c .git/config", bare=True),
    "the configuration of another": Attempt("echo ../evil > .git/commondir"),
    "Magy's settings of the project": Attempt("echo evil >> magy.toml", bare=True),
    "other settings in their place": Attempt("echo evil > m; mv -f m magy.toml", bare=True),
    "no settings": Attempt("rm -f magy.toml", bare=True),
    "an agent": Attempt("touch .magy/agent/evil.md", bare=True),
    "other agents in their place": Attempt("mv .magy o; mkdir .magy", bare=True),
    "servers of tools": Attempt("echo evil > .mcp.json", bare=True),
    # --- what is to be seen by nobody
    "a key": Attempt("cat ~/.ssh/id_ed25519", bare=True),
    "a key by another name": Attempt("cat /proc/self/root$HOME/.ssh/id_ed25519", bare=True),
    "an account": Attempt("cat ~/.aws/credentials ~/.netrc", bare=True),
    "the browser": Attempt("cat ~/.mozilla/cookies", bare=True),
    "all of the home": Attempt("grep -rsh the-secret ~/.ssh ~/.aws ~/.netrc ~/.mozilla", bare=True),
    "what Magy keeps": Attempt("cat $STATE/magy.sqlite", bare=True),
    "change what Magy keeps": Attempt("echo x > $STATE/magy.sqlite; test -s $STATE/magy.sqlite && echo OUT!"),
    "Magy's socket": reaches("AF_UNIX", "os.environ['STATE'] + '/bus'", bare=True),
    "a socket in /tmp": python(
        "import glob\nfor path in glob.glob('/tmp/magy-sandbox-test-*/s'):\n"
        " if not socket.socket(socket.AF_UNIX).connect_ex(path): print('OUT!')", bare=True,
    ),
    "sockets of services": Attempt(
        "find /run -type s 2>/dev/null | grep . && echo OUT!; test -e /run/docker.sock && echo OUT!"
    ),
    "memory that is shared": Attempt("test -e /dev/shm/$OWN && echo OUT!", bare=True),
    # --- other processes
    "see Magy": Attempt("test -e /proc/$MAGY/environ && grep -qa python /proc/$MAGY/cmdline && echo OUT!", bare=True),
    "signal Magy": Attempt("kill -0 $MAGY && grep -qa python /proc/$MAGY/cmdline && echo OUT!", bare=True),
    "count the processes": Attempt("set -- /proc/[0-9]*; test $# -gt 9 && echo OUT!", bare=True),
    "trace Magy": syscall("call(101, 16, int(os.environ['MAGY']), 0, 0)"),
    "read Magy's memory": syscall(
        "held = ctypes.create_string_buffer(16)\n"
        "here = (ctypes.c_ulong * 2)(ctypes.addressof(held), 16)\n"
        "there = (ctypes.c_ulong * 2)(0x1000, 16)\n"
        "call(310, int(os.environ['MAGY']), here, 1, there, 1, 0)\n"
        "print('OUT!' if ctypes.get_errno() == 14 else '')  # bad address: it was found",
    ),
    "type into the terminal": python(
        "import fcntl\ntry: fd = os.open('/dev/tty', os.O_RDWR)\nexcept OSError: fd = os.openpty()[1]\n"
        "fcntl.ioctl(fd, 0x5412, b'x'); print('OUT!')"
    ),
    "a daemon": Attempt("setsid sleep 300 >/dev/null 2>&1 & disown", bare=True),
    "a daemon of a daemon": python(
        "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  os.execvp('sh', ['sh', '-c', 'exec sleep 300 >/dev/null 2>&1'])\n"
        " os._exit(0)", bare=True,
    ),
    "a daemon that hears no signal": Attempt(
        "(trap '' TERM HUP INT; exec setsid nohup sleep 300) >/dev/null 2>&1 &", bare=True
    ),
    # --- the network
    "an abstract socket": reaches("AF_UNIX", "'\\0' + os.environ['OWN']", alone=True, bare=True),
    "this machine": reaches("AF_INET", "('127.0.0.1', int(os.environ['PORT']))", alone=True, bare=True),
    "this machine by IPv6": reaches("AF_INET6", "('::1', int(os.environ['PORT6']))", alone=True, bare=True),
    "by another address": reaches("AF_INET", "('192.0.2.1', 80)", alone=True),
    "by UDP": python(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('192.0.2.1', 53));"
        " print('OUT!')", alone=True,
    ),
    "by a name": python("socket.getaddrinfo('example.org', 80); print('OUT!')", alone=True),
    "the host of this virtual machine": reaches("AF_VSOCK", "(2, 1)"),
    "a device of the network": Attempt("ip link add evil type dummy && echo OUT!", alone=True),
    "packets": python("socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('OUT!')", alone=True),
    "the network of process 1": Attempt("nsenter -t 1 -n true && echo OUT!", alone=True),
    "the proxy, to this machine": Attempt(
        "curl -sf --max-time 5 -x http://127.0.0.1:3128 http://127.0.0.1:$PORT/ && echo OUT!", alone=True
    ),
    "the proxy, to a name of this machine": Attempt(
        "curl -sf --max-time 5 -x http://127.0.0.1:3128 http://localhost:$PORT/ && echo OUT!", alone=True
    ),
    "a tunnel of the proxy": Attempt(
        "curl -sf --max-time 5 -p -x http://127.0.0.1:3128 http://localhost:$PORT/ && echo OUT!", alone=True
    ),
    "the proxy, to this machine by other spellings": python(
        "names = ('2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '127.1', '0', '0.0.0.0', '[::1]',"
        " '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', 'localhost.', 'LOCALHOST', 'example.org@127.0.0.1',"
        " 'localhost%00.example.com', 'x.example.com.localhost')\n"
        "port = os.environ['PORT']\n"
        "for name in names:\n"
        " for first in (f'CONNECT {name}:{port}', f'GET http://{name}:{port}/'):\n"
        "  s = socket.create_connection(('127.0.0.1', 3128), 5)\n"
        "  s.sendall(f'{first} HTTP/1.1\\r\\nHost: example.org\\r\\n\\r\\n'.encode())\n"
        "  try: said = s.recv(99)\n"
        "  except ConnectionError: said = b''\n"
        "  if said and b'Refused' not in said: print('OUT!', first, said)", alone=True,
    ),
    "the proxy, to its own port": Attempt(
        "curl -sf --max-time 5 -x http://127.0.0.1:3128 http://127.0.0.1:3128/ && echo OUT!", alone=True
    ),
}  # fmt: skip
