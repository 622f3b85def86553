"""Readers in other processes: commands as lines, events as lines.

An event is a JSON object; every command is completed by `done`, in order. Records that arrive
meanwhile are kept for the next poll. A process has its own stdin and stdout, or is one of several
clients in a process, at the other end of a connection.

    us ─▶ pause 1 · resume 1 · seek 0 7 · commit [5] · begin 5 · (end of input: close)
    {"seen": [...]} {"assigned": [...]} {"revoked": [...]} {"committed": 5} {"done": ...} ─▶ us
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from typing import IO, Any, Final, Protocol

from .interface import TIMEOUT_SECONDS, ControllableReader, SeenRecord

POLL_SECONDS: Final = 0.05


class Input(Protocol):
    """Where commands are written."""

    @property
    def closed(self) -> bool: ...
    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...
    def close(self) -> object: ...


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    @property
    def stdin(self) -> Input | None: ...
    @property
    def stdout(self) -> IO[str] | None: ...
    @property
    def stderr(self) -> IO[str] | None: ...
    @property
    def returncode(self) -> int | Any: ...
    def wait(self, timeout: float | None = None) -> int: ...


class Lines:
    """The output of a process, line by line."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors: list[str] = []
        pipes = [(process.stdout, self._lines.put), (process.stderr, self._add_error)]
        self._threads = [
            threading.Thread(target=self._read, args=each) for each in pipes if each[0] is not None
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(pipe: IO[str] | None, put: Callable[[str | None], None]) -> None:
        assert pipe is not None
        with pipe:
            for line in pipe:
                put(line)
        put(None)

    def _add_error(self, line: str | None) -> None:
        self._errors.append(line or "")

    @property
    def stderr(self) -> str:
        """What the process has written to stderr."""
        return "".join(self._errors)

    def next(self, seconds: float) -> str | None:
        """Return the next line, None at the end; raises queue.Empty after a timeout."""
        line = self._lines.get(timeout=seconds)
        if line is None:
            self._lines.put(None)
        return line

    def failure(self) -> RuntimeError:
        """Return the error of a process that exited unexpectedly."""
        self.end()
        return RuntimeError(self.stderr or "the process exited")

    def end(self) -> list[str]:
        """Wait until the process has exited; returns its last lines."""
        last: list[str] = []
        while (line := self.next(TIMEOUT_SECONDS)) is not None:
            last.append(line)
        self.process.wait(TIMEOUT_SECONDS)
        for thread in self._threads:
            thread.join(TIMEOUT_SECONDS)
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        return last


class ProcessReader(ControllableReader):
    """A consumer in another process."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._lines = Lines(process)
        self._seen: list[SeenRecord] = []
        self._committed: list[int] = []
        self._done = 0

    def _handle_line(self, line: str | None) -> None:
        """Handle a line of output."""
        if line is None:
            raise self._lines.failure()
        event: dict[str, Any] = json.loads(line)
        match event:
            case {"seen": [topic, partition, offset, key, value]}:
                self._seen.append(
                    SeenRecord(topic, partition, offset, key.encode(), value.encode())
                )
            case {"assigned": partitions}:
                self.note("assigned", [(topic, partition) for topic, partition in partitions])
            case {"revoked": partitions}:
                self.note("revoked", [(topic, partition) for topic, partition in partitions])
            case {"committed": offset}:
                self._committed.append(offset)
            case {"done": _}:
                self._done += 1
            case {"error": trace}:
                raise RuntimeError(trace)
            case _:
                raise AssertionError(f"unknown event {line}")

    def poll(self) -> list[SeenRecord]:
        try:
            self._handle_line(self._lines.next(POLL_SECONDS))
            while True:
                self._handle_line(self._lines.next(0.001))
        except queue.Empty:
            found, self._seen = self._seen, []
            return found

    def _command(self, *words: object) -> None:
        """Send a command, and wait until it is done."""
        stdin = self._lines.process.stdin
        assert stdin is not None
        before = self._done
        stdin.write(" ".join(map(str, words)) + "\n")
        stdin.flush()
        while self._done == before:
            self._handle_line(self._lines.next(TIMEOUT_SECONDS))

    def pause(self, partition: int) -> None:
        self._command("pause", partition)

    def resume(self, partition: int) -> None:
        self._command("resume", partition)

    def seek(self, partition: int, offset: int) -> None:
        self._command("seek", partition, offset)

    def commit(self, offset: int | None = None) -> None:
        self._command("commit", *(() if offset is None else (offset,)))

    def commit_async(self, offset: int) -> Callable[[], bool]:
        self._committed.clear()
        self._command("begin", offset)
        return lambda: self._committed == [offset]

    def close(self) -> list[SeenRecord]:
        stdin = self._lines.process.stdin
        assert stdin is not None
        stdin.close()
        for line in self._lines.end():
            self._handle_line(line)
        assert self._lines.process.returncode == 0, self._lines.stderr
        found, self._seen = self._seen, []
        return found
