"""Readers that are processes: told what to do by lines on stdin, they say by lines what comes.

Law: a line is a JSON object; what was asked for is answered by `done`, in order, and what comes
meanwhile is kept for the next poll.

    us ─▶ pause 1 · resume 1 · seek 0 7 · commit [5] · begin 5 · (end of input: close)
    {"seen": [...]} {"assigned": [...]} {"revoked": [...]} {"committed": 5} {"done": ...} ─▶ us
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Callable
from typing import IO, Any, Final

from .footing import TIMEOUT_SECONDS, Seen, Steered

POLL_SECONDS: Final = 0.05


class Lines:
    """What a process says, line by line, and the end of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._said: list[str] = []
        self._threads = [
            threading.Thread(target=self._hear, args=(process.stdout, self._lines.put)),
            threading.Thread(target=self._hear, args=(process.stderr, self._complain)),
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _hear(pipe: IO[str] | None, put: Callable[[str | None], None]) -> None:
        assert pipe is not None
        with pipe:
            for line in pipe:
                put(line)
        put(None)

    def _complain(self, line: str | None) -> None:
        self._said.append(line or "")

    @property
    def wrong(self) -> str:
        """What it wrote to stderr so far."""
        return "".join(self._said)

    def next(self, seconds: float) -> str | None:
        """Give the next line; raises queue.Empty if none comes in time, None is the end."""
        line = self._lines.get(timeout=seconds)
        if line is None:
            self._lines.put(None)
        return line

    def failure(self) -> RuntimeError:
        """Say why it ended by itself."""
        self.end()
        return RuntimeError(self.wrong or "it ended")

    def end(self) -> list[str]:
        """Wait until it has ended; gives what it said last."""
        last: list[str] = []
        while (line := self.next(TIMEOUT_SECONDS)) is not None:
            last.append(line)
        self.process.wait(TIMEOUT_SECONDS)
        for thread in self._threads:
            thread.join(TIMEOUT_SECONDS)
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        return last


class TalkingReader(Steered):
    """A consumer in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__()
        self._lines = Lines(process)
        self._seen: list[Seen] = []
        self._committed: list[int] = []
        self._done = 0

    def _take(self, line: str | None) -> None:
        """Take in a line."""
        if line is None:
            raise self._lines.failure()
        said: dict[str, Any] = json.loads(line)
        match said:
            case {"seen": [topic, partition, offset, key, value]}:
                self._seen.append(Seen(topic, partition, offset, key.encode(), value.encode()))
            case {"assigned": partitions}:
                self.note("assigned", [(topic, partition) for topic, partition in partitions])
            case {"revoked": partitions}:
                self.note("revoked", [(topic, partition) for topic, partition in partitions])
            case {"committed": offset}:
                self._committed.append(offset)
            case {"done": _}:
                self._done += 1
            case _:
                raise AssertionError(f"it said {line}")

    def poll(self) -> list[Seen]:
        try:
            self._take(self._lines.next(POLL_SECONDS))
            while True:
                self._take(self._lines.next(0.001))
        except queue.Empty:
            found, self._seen = self._seen, []
            return found

    def _tell(self, *words: object) -> None:
        """Tell it something, and wait until that is done."""
        stdin = self._lines.process.stdin
        assert stdin is not None
        before = self._done
        stdin.write(" ".join(map(str, words)) + "\n")
        stdin.flush()
        while self._done == before:
            self._take(self._lines.next(TIMEOUT_SECONDS))

    def pause(self, partition: int) -> None:
        self._tell("pause", partition)

    def resume(self, partition: int) -> None:
        self._tell("resume", partition)

    def seek(self, partition: int, offset: int) -> None:
        self._tell("seek", partition, offset)

    def commit(self, offset: int | None = None) -> None:
        self._tell("commit", *(() if offset is None else (offset,)))

    def commit_async(self, offset: int) -> Callable[[], bool]:
        self._committed.clear()
        self._tell("begin", offset)
        return lambda: self._committed == [offset]

    def close(self) -> list[Seen]:
        stdin = self._lines.process.stdin
        assert stdin is not None
        stdin.close()
        for line in self._lines.end():
            self._take(line)
        assert self._lines.process.returncode == 0, self._lines.wrong
        found, self._seen = self._seen, []
        return found
