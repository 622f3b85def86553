"""Reads live packets from a pipe, a growing file or an interface, while a screen is drawn.

Nothing else runs meanwhile: a read waits for data, for a key, or until the next drawing is
due, whichever comes first. The terminal is left as it was found.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader, RawIOBase
from pathlib import Path
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

from ..inputs import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from .followed import FollowedFile

TERMINAL: Final = "/dev/tty"
"""Where keys come from: standard input has the packets."""


FOLLOW_SECONDS: Final = 0.1
"""Seconds between two looks at the end of a growing file."""


class Ticker:
    """What a live read does besides.

    interval: seconds between two drawings. draw: called for each. keys: the terminal, if there is
    one; on_key: called with a key, and returns whether to go on. data_at: when the last data came.
    """

    def __init__(
        self,
        interval: float,
        draw: Callable[[], None],
        keys: int | None = None,
        on_key: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.data_at = monotonic()
        self.quit = False
        self._interval = interval
        self._draw = draw
        self._keys = keys
        self._on_key = on_key
        self._due = monotonic() + interval

    def wait(self, stream: Any) -> bool:
        """Wait until a stream has data or has ended; False if the user quits."""
        while not self.quit:
            if stream in self._ready([stream], self._interval):
                return not self.quit
        return False

    def pause(self, seconds: float) -> bool:
        """Wait until something was done, so many seconds at most; False if the user quits."""
        self._ready([], seconds)
        return not self.quit

    def _ready(self, streams: list[Any], seconds: float) -> list[Any]:
        """Draw if that is due, and take keys; return the streams that are ready by then."""
        now = monotonic()
        if now >= self._due:
            self._draw()
            self._due = now + self._interval
        waited = streams if self._keys is None else [*streams, self._keys]
        limit = min(seconds, max(0.0, self._due - monotonic()))
        if not waited:  # which Windows refuses
            sleep(limit)
            return []
        ready = select.select(waited, [], [], limit)[0]
        if self._keys in ready:
            self._take_keys()
        return ready

    def _take_keys(self) -> None:
        assert self._keys is not None
        pressed = os.read(self._keys, 64).decode("ascii", "ignore")
        if not pressed:  # the terminal was closed
            self._keys = None
        for key in pressed:
            self.quit = self.quit or not self._on_key(key)
        self._draw()


class LiveStream(RawIOBase):
    """A stream of packets that is read as a ticker allows.

    follow: at the end of a file, wait for more data until the user quits.
    """

    def __init__(self, stream: BinaryIO | FollowedFile, ticker: Ticker, *, follow: bool) -> None:
        self._stream: Any = stream
        self._ticker = ticker
        self._follow = follow

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self._ticker.wait(self._stream):
            return 0
        view = memoryview(buffer).cast("B")
        data = self._stream.read1(len(view))
        while not data and self._follow and self._ticker.pause(FOLLOW_SECONDS):
            data = self._stream.read1(len(view))
        if data:
            self._ticker.data_at = monotonic()
        view[: len(data)] = data
        return len(data)


def live(stream: BinaryIO | FollowedFile, ticker: Ticker, *, follow: bool = False) -> BinaryIO:
    """Return a stream that is read as a ticker allows. follow: it is a file that grows."""
    return BufferedReader(LiveStream(stream, ticker, follow=follow))


@contextmanager
def keyboard() -> Iterator[int | None]:
    """Open the terminal for single keys; None if there is none, or output goes elsewhere."""
    with ExitStack() as stack:
        keys: int | None = None
        if sys.stdout.isatty():
            with suppress(OSError, ImportError):
                keys = stack.enter_context(_keys())
        yield keys


@contextmanager
def _keys() -> Iterator[int]:
    import termios
    import tty

    keys = os.open(TERMINAL, os.O_RDONLY)
    before = termios.tcgetattr(keys)
    try:
        tty.setcbreak(keys)
        yield keys
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)
        os.close(keys)


# -- interfaces

PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "tcpdump": ("-s", "0", "-U", "-w", "-"),
    "dumpcap": ("-q", "-w", "-"),
}
"""Programs that capture packets -> arguments with which they write them to standard output."""

FILTER_OPTION: Final = {"tcpdump": (), "dumpcap": ("-f",)}


def capture_command(interface: str, ports: list[int] | None) -> list[str]:
    """Return the command that captures an interface; InputError if no program is installed."""
    wanted = " or ".join(f"tcp port {port}" for port in ports or ()) or "tcp"
    for program, arguments in PROGRAMS.items():
        executable = shutil.which(program)
        if executable is not None:
            return [executable, "-i", interface, *arguments, *FILTER_OPTION[program], wanted]
    raise InputError("neither tcpdump nor dumpcap is installed")


@contextmanager
def captured(command: list[str]) -> Iterator[BinaryIO]:
    """Capture packets; InputError with the program's message if it fails."""
    with tempfile.TemporaryFile() as messages, _started(command, messages) as running:
        assert running.stdout is not None
        error: InputError | None = None
        try:
            yield BufferedReader(running.stdout)  # type: ignore[type-var]  # IO[bytes] is raw
        except InputError as caught:  # such as no packets at all
            error = caught
        finally:
            code = _ended(running)
        if code:
            messages.seek(0)
            lines = messages.read().decode(errors="replace").strip().splitlines()
            message = " ".join(lines[-2:]) or f"exit code {code}"
            raise InputError(f"{Path(command[0]).name}: {message}")
        if error is not None:
            raise error


EXIT_SECONDS: Final = 0.3
"""How long a program that has closed its output may take to exit."""


def _ended(running: subprocess.Popen[bytes]) -> int:
    """End a program; return its exit code, 0 if it was still running."""
    try:
        return running.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        running.terminate()
        running.wait()
        return 0


def _started(command: list[str], messages: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, bufsize=0
    )
