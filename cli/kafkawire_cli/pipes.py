"""A long run: output into a pipe whose reader may leave early, as `head` does, or onto a disk that
is full; and memory.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Final

YOUNG: Final = 1 << 18
"""Objects made, and not freed, before garbage is looked for."""


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


def drop_output() -> None:
    """Give up what is still buffered: it has nowhere to go, and the interpreter would try again at
    exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
