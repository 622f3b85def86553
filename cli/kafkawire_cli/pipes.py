"""Configures output and memory of the process.

A closed pipe (`| head`) ends a command quietly; a full disk is an error.
"""

from __future__ import annotations

import atexit
import gc
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Final

GC_THRESHOLD: Final = 1 << 19
"""Net allocations before the cyclic garbage collector runs."""

WRITE_BYTES: Final = 1 << 18
"""Bytes per write: the kernel then keeps a file in large pages, which takes half of the time."""

UNUSABLE: Final = 2
"""The exit code of an input that cannot be read, and of an output that cannot be written."""

M_TRIM_THRESHOLD: Final = -1
M_TOP_PAD: Final = -2
M_MMAP_THRESHOLD: Final = -3
MALLOPT: Final = {M_MMAP_THRESHOLD: 1 << 25, M_TRIM_THRESHOLD: 1 << 28, M_TOP_PAD: 1 << 22}
"""Parameters of glibc's `mallopt`: freed memory up to these sizes is not returned to the kernel.
The first is the largest value allowed.
"""


@contextmanager
def stop_at_closed_pipe() -> Iterator[None]:
    """End the command quietly when the reader of its output closes the pipe.

    An exit code that was set before is kept.
    """
    stdout = sys.stdout
    code: str | int | None = 0
    try:
        yield
        sys.stdout.flush()
        return
    except BrokenPipeError:
        pass
    except SystemExit as error:
        if sys.stdout is stdout:  # otherwise click has seen the closed pipe and set exit code 1
            code = error.code
            if _flush(reported=code == UNUSABLE):
                raise
    drop_output()
    sys.exit(code)


def _flush(*, reported: bool) -> bool:
    """Flush standard output; False if the pipe is closed, or an error that is reported persists.

    The interpreter would report that at exit.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    except OSError:
        if not reported:
            raise
        return False
    return True


@contextmanager
def at_closed_pipe(call: Callable[[], object]) -> Iterator[None]:
    """Call a function of the running event loop when the reader of the output closes the pipe.

    A command that waits for input notices nothing else: only a write to the pipe would fail.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    output = _output_pipe()
    if output is None:
        yield
        return

    def ready() -> None:
        loop.remove_reader(output)
        if _is_closed(output):
            call()

    loop.add_reader(output, ready)  # a pipe that is only written is ready once it is closed
    try:
        yield
    finally:
        loop.remove_reader(output)


def _output_pipe() -> int | None:
    """Return the file descriptor of standard output if it is a pipe."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # not a file, or closed
        return None
    return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None


def _is_closed(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def open_closed_streams() -> None:
    """Open the standard streams that the caller closed (`<&-`, `>&-`).

    Input is empty; output fails as it does for other commands ("Bad file descriptor"), and its
    number is not that of a file opened later. What goes to standard error is dropped.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest number that is free
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - open until the end
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def prepare_output() -> None:
    """Make writes to standard output complete or fail, and escape text that it cannot encode.

    With PYTHONUNBUFFERED, a write may be partial without an error; therefore output is buffered by
    line then. `sys.__stdout__` stays open, because `shutil.get_terminal_size` reads it.
    """
    out = sys.stdout
    if not isinstance(out, TextIOWrapper):
        return
    errors = "backslashreplace"
    out.reconfigure(errors=errors)
    if isinstance(out.buffer, FileIO):
        buffer = BufferedWriter(FileIO(out.fileno(), "wb", closefd=False))
        sys.stdout = TextIOWrapper(buffer, out.encoding, errors, line_buffering=True)


def tune() -> None:
    """Run the cyclic GC less often.

    Decoding frees objects by reference counting; only searches in malformed bodies make cycles. The
    GC took a third of the time.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that stay idle
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 4, 2)
    atexit.register(gc.freeze)  # otherwise the GC runs over all objects at exit


def collect_at_exit() -> None:
    """Let the cyclic GC run at exit, for extensions that report objects which it did not free."""
    atexit.unregister(gc.freeze)
    gc.unfreeze()


def keep_memory() -> None:
    """Reuse freed memory, for long runs.

    The kernel clears memory that is returned and allocated again, for each block read and each
    column written.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # if Arrow is not yet loaded
    if sys.platform == "linux":
        import ctypes

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is None:  # musl
            return
        for option, size in MALLOPT.items():
            mallopt(option, size)


def write(text: bytes | memoryview) -> None:
    """Write encoded text to standard output."""
    view = memoryview(text)  # slices of bytes would be copies
    for at in range(0, len(text), WRITE_BYTES):
        sys.stdout.buffer.write(view[at : at + WRITE_BYTES])


def drop_output() -> None:
    """Discard buffered output, which the interpreter would otherwise try to write at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
