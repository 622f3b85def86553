"""Starts Python programs in processes that begin with kafkawire's modules imported.

A program is a process of its own, with the arguments, folder, environment and standard
streams of what starts it; that ends as the program does, and passes signals on. Only the imports
are shared, which take four fifths of the CPU time of a small command, and what Python reads from
the environment as it starts. Tests of imports, buffers, terminals and process groups start Python
itself, as tests/packaging does.

    python() ── socket: arguments, folder, environment, streams ─▶ fork ─▶ the program
             ◀─ process id, then wait status ──────────────────────┘
"""

from __future__ import annotations

import importlib
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Final

IMPORTED: Final = ("kafkawire.capture.tables", "kafkawire_cli.registry", "numpy", "typer")
LARGEST: Final = 1 << 20
PROGRAM: Final = """\
#!{python} -ISE
import _signal, _socket, marshal, posix, select, sys

passed_on = _signal.SIGINT, _signal.SIGTERM
_signal.pthread_sigmask(_signal.SIG_BLOCK, passed_on)
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
server.connect({path!r})
streams = b"".join(each.to_bytes(4, sys.byteorder) for each in (0, 1, 2))
request = marshal.dumps((sys.argv[1:], posix.getcwdb(), posix.environ))
server.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
process = int(server.recv(64))
woken, wakes = _socket.socketpair()
wakes.setblocking(False)
_signal.set_wakeup_fd(wakes.fileno())
for each in passed_on:
    _signal.signal(each, lambda number, _: posix.kill(process, number))
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, passed_on)
while server not in select.select([server, woken], [], [])[0]:
    woken.recv(64)
status = int(server.recv(64))
if posix.WIFSIGNALED(status):
    if posix.WTERMSIG(status) != _signal.SIGKILL:
        _signal.signal(posix.WTERMSIG(status), _signal.SIG_DFL)
    posix.kill(posix.getpid(), posix.WTERMSIG(status))
posix._exit(posix.WEXITSTATUS(status))
"""
"""It imports only modules in C, which takes a hundredth of a second. Signals wait until it knows
the process that gets them: the program may have begun before. One that comes just before the call
that waits does not interrupt it, but makes a socket readable."""

_servers: list[Server] = []


def python() -> str:
    """Return a program that stands for `sys.executable`: for its options -W error, -c and -m."""
    if not hasattr(os, "pidfd_open"):  # not Linux
        return sys.executable
    if not _servers:
        _servers.append(Server())
    return str(_servers[0].program)


def pytest_sessionfinish() -> None:
    """End the process that this one has started."""
    while _servers:
        _servers.pop().close()


class Server:
    """A process that is forked for each program."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="commands-"))
        self.program = self._folder / "python"
        path = str(self._folder / "socket")
        self.program.write_text(PROGRAM.format(python=sys.executable, path=path))
        self.program.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.command_server", path],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the server of commands did not start"

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        shutil.rmtree(self._folder)


def serve(path: str) -> socket.socket:
    """Accept connections until standard input ends; return each in a process of its own."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen()
    print("ready", flush=True)
    handlers = 0
    while server in select.select([server, sys.stdin], [], [])[0]:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            return connection
        connection.close()
        handlers += 1
        while handlers and os.waitpid(-1, os.WNOHANG)[0]:
            handlers -= 1
    sys.exit()


def run(connection: socket.socket) -> None:
    """Run the program of a connection in a process, and send how it ended."""
    data, streams, _, _ = socket.recv_fds(connection, LARGEST, 3)
    process = os.fork()
    if process:
        with suppress(OSError):  # what started it was killed: so is the program, below
            connection.send(str(process).encode())
        for each in streams:
            os.close(each)
        ended = os.pidfd_open(process)
        watched: list[socket.socket | int] = [connection, ended]
        if ended not in select.select(watched, [], [])[0]:
            os.kill(process, signal.SIGKILL)  # as what started it was killed
        status = os.waitpid(process, 0)[1]
        with suppress(OSError):
            connection.send(str(status).encode())
        os._exit(0)
    connection.close()
    arguments, folder, environment = marshal.loads(data)
    for target, each in enumerate(streams):
        os.dup2(each, target)
        os.close(each)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(environment)
    start(arguments)


def start(arguments: list[str]) -> None:
    """Do what Python does with its arguments."""
    if arguments[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        del arguments[:2]
    option, program, *rest = arguments
    sys.argv[:] = [option, *rest]
    if option == "-m":
        sys.path[0] = os.getcwd()
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        assert option == "-c", option
        sys.path[0] = ""
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in IMPORTED:
            importlib.import_module(name)
    run(serve(sys.argv[1]))
