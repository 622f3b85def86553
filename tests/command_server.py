"""Runs `kafkawire` commands in processes that begin with its modules imported.

Law: a command is a process of its own, with the arguments, folder, environment and standard
streams of the program that starts it; that program ends as the command does, and passes signals on.
Only the imports are shared: they take four fifths of the CPU time of a small command.
tests/packaging starts commands as users do.

    kafkawire (PROGRAM) ── socket: arguments, folder, environment, streams ─▶ fork ─▶ the command
                        ◀─ process id, then wait status ──────────────────────┘
"""

from __future__ import annotations

import importlib
import marshal
import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

COMMAND: Final = "kafkawire_cli.main"
IMPORTED: Final = ("kafkawire.capture.tables", "kafkawire_cli.registry", "numpy", "typer")
LARGEST: Final = 1 << 20
PROGRAM: Final = """\
#!{python} -ISE
import _signal, _socket, marshal, posix, sys

server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
server.connect({path!r})
streams = b"".join(each.to_bytes(4, sys.byteorder) for each in (0, 1, 2))
request = marshal.dumps((sys.argv[1:], posix.getcwdb(), posix.environ))
server.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
process = int(server.recv(64))
for each in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(each, lambda number, _: posix.kill(process, number))
status = int(server.recv(64))
if posix.WIFSIGNALED(status):
    _signal.signal(posix.WTERMSIG(status), _signal.SIG_DFL)
    posix.kill(posix.getpid(), posix.WTERMSIG(status))
posix._exit(posix.WEXITSTATUS(status))
"""
"""The program `kafkawire`: it imports only modules in C, which takes a hundredth of a second."""


class CommandServer:
    """A process that runs commands for `program`, a file that this makes in an empty folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.program = folder / "kafkawire"
        path = str(folder / "socket")
        self.program.write_text(PROGRAM.format(python=sys.executable, path=path))
        self.program.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.command_server", path],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the server of commands did not start"

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.communicate()


def serve(path: str) -> socket.socket:
    """Accept connections; return each in a process of its own."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen()
    handlers = 0
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            return connection
        connection.close()
        handlers += 1
        while handlers and os.waitpid(-1, os.WNOHANG)[0]:
            handlers -= 1


def run(connection: socket.socket) -> None:
    """Run the command of a connection in a process, and send how it ended."""
    data, streams, _, _ = socket.recv_fds(connection, LARGEST, 3)
    process = os.fork()
    if process:
        connection.send(str(process).encode())
        for each in streams:
            os.close(each)
        connection.send(str(os.waitpid(process, 0)[1]).encode())
        os._exit(0)
    connection.close()
    arguments, folder, environment = marshal.loads(data)
    for target, each in enumerate(streams):
        os.dup2(each, target)
        os.close(each)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(environment)
    sys.argv[1:] = arguments
    runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    run(serve(sys.argv[1]))
