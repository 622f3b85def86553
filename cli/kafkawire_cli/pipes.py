"""A long run: output into a pipe whose reader may leave early, as `head` does, or onto a disk that
is full; and memory.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Final

YOUNG: Final = 1 << 19
"""Objects made, and not freed, before garbage is looked for."""

PIECE: Final = 1 << 15
"""Bytes written at a time: for more, the kernel takes larger pages of memory, which it has to find
and to clear; of a MiB at a time, writing took twice as long as decoding.
"""

M_TRIM_THRESHOLD: Final = -1
M_TOP_PAD: Final = -2
M_MMAP_THRESHOLD: Final = -3
KEPT: Final = {M_MMAP_THRESHOLD: 1 << 25, M_TRIM_THRESHOLD: 1 << 28, M_TOP_PAD: 1 << 22}
"""What glibc's `mallopt` is told: sizes up to which memory is not given back. The first is the most
that it takes.
"""


@contextmanager
def until_the_reader_leaves() -> Iterator[None]:
    """Print inside; a reader that has seen enough ends the command quietly. What the command found
    before stays its exit code.
    """
    stdout = sys.stdout
    code: str | int | None = 0
    try:
        yield
        sys.stdout.flush()
        return
    except BrokenPipeError:
        pass
    except SystemExit as ended:
        if sys.stdout is stdout:  # else click has met the closed pipe, which it calls a failure
            code = ended.code
            if _flushed():
                raise
    drop_output()
    sys.exit(code)


def _flushed() -> bool:
    """Write what is buffered: at its own exit the interpreter would complain of a closed pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    return True


def prepare_output() -> None:
    """Make standard output take all that is written, or fail; text that the terminal cannot show is
    escaped. Unbuffered (PYTHONUNBUFFERED), a write may take a part only, which nobody is told: so
    that is buffered, and lines go out as they come.
    """
    out = sys.stdout
    if not isinstance(out, TextIOWrapper):
        return
    errors = "backslashreplace"
    out.reconfigure(errors=errors)
    if isinstance(out.buffer, FileIO):
        encoding, raw = out.encoding, out.detach()
        assert isinstance(raw, FileIO)
        buffer = BufferedWriter(raw)
        sys.stdout = TextIOWrapper(buffer, encoding, errors, line_buffering=True)


def tune() -> None:
    """Collect garbage less often: what decoding makes is freed as soon as nobody needs it, without
    circles but where a malformed body was searched; looking for some took a third of the time.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's, which would wait for nothing
    gc.freeze()
    gc.set_threshold(YOUNG, 4, 2)
    atexit.register(gc.freeze)  # or the interpreter looks for circles in all that goes with it


def keep_memory() -> None:
    """Use again what was freed, for a run over much: a kernel that takes memory back clears it
    before it gives it out again, for each block that is read and each column that is written.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # where it is not loaded yet
    if sys.platform == "linux":
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is None:  # musl
            return
        for option, size in KEPT.items():
            mallopt(option, size)


def write(text: bytes | memoryview) -> None:
    """Write what is encoded already to standard output."""
    for at in range(0, len(text), PIECE):
        sys.stdout.buffer.write(text[at : at + PIECE])


def make_private(path: Path) -> None:
    """Make a file that only its owner may read, or that of one that is there, before secrets are
    written into it.
    """
    from kafkawire.net.server_recording import private

    os.close(private(str(path), os.O_WRONLY | os.O_CREAT))


def drop_output() -> None:
    """Give up what is still buffered: it has nowhere to go, and the interpreter would try again at
    exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
