"""Writes files that appear under their names only when they are complete.

A file is written beside its target, in the same folder, synced and renamed; after an error or a
signal there is nothing new, and a file that was there before is unchanged.

    folder/.NAME.PID-N.part --fsync--> --rename--> folder/NAME

What has no complete state is written in place: pipes and devices, and descriptors of this process
such as `/dev/stdout`; so is a file in a folder where no other can be created. The file that a
symbolic link points to is replaced, not the link. The mode of a new file is that of any created
file; a replaced file keeps its mode, and its owner if permitted. Used by the generator and, since
it is the lowest layer, by the command line.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES, ELOOP, EPERM, EROFS
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that end a process at once, unless something handles or ignores them."""

DESCRIPTORS: Final = ("/proc/", "/dev/fd")
"""Where the names of open descriptors are."""

MAX_LINKS: Final = 40
"""Symbolic links that are followed, as by Linux."""

PRIVATE: Final = 0o600
SHOWN_CHARACTERS: Final = 48
"""Characters of the target's name in the name of the file beside it: names have 255 bytes."""


class _File(NamedTuple):
    """A file: its path as given, and where it is written.

    target: what `written` is renamed to; None for what is written in place.
    """

    path: Path
    written: Path
    target: Path | None


@contextmanager
def whole_files(
    paths: Iterable[Path], *, private: bool = False, durable: bool = True
) -> Iterator[dict[Path, Path]]:
    """Yield where each file is to be written; at the end of the block all get their names.

    private: only the owner may read them. durable: sync them, so that they survive a power failure.
    Raises OSError with the given path where a file cannot be created.
    """
    with ended_by_signals(), ExitStack() as removed:
        files = [_created(Path(path), removed, private=private) for path in dict.fromkeys(paths)]
        try:
            yield {file.path: file.written for file in files}
            replaced = [(file.written, file.target) for file in files if file.target is not None]
            if durable:
                for written, _ in replaced:
                    _sync(written)
            for written, target in replaced:
                os.replace(written, target)
        except OSError as error:
            _name_as_given(error, files)
            raise


@contextmanager
def whole_file(path: Path, *, private: bool = False, durable: bool = True) -> Iterator[Path]:
    """Yield where a file is to be written, as `whole_files`."""
    with whole_files([path], private=private, durable=durable) as written:
        yield written[Path(path)]


def write_whole(path: Path, data: bytes, *, private: bool = False, durable: bool = True) -> int:
    """Write a file, and return its number of bytes. Raises OSError."""
    with whole_file(path, private=private, durable=durable) as written:
        return written.write_bytes(data)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the process as `sys.exit` does: what is open is cleaned up.

    The exit code is that of shells, 128 and the number of the signal. A signal that is handled or
    ignored already stays so; only the main thread can change that.
    """
    changed = _handled_by_exit()
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _handled_by_exit() -> list[signal.Signals]:
    """Change what happens at signals that would end the process; return which."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    changed = [one for one in ENDING if signal.getsignal(one) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, end)
    except ValueError:  # not in the main thread: the first call fails
        return []
    return changed


def _created(path: Path, removed: ExitStack, *, private: bool) -> _File:
    """Create the file beside a target. removed: removes it, unless it was renamed."""
    target = _target(path)
    before = None if target is None else _status(target)
    if target is None or (before is not None and not stat.S_ISREG(before.st_mode)):
        return _in_place(path, private=private)
    if before is not None:  # an error as where it is overwritten
        os.close(_opened(target, os.O_WRONLY, path))
    try:
        with signals_blocked():  # a signal after the file was created would leave it
            beside = _beside(target, path, PRIVATE if private else 0o666)  # less the umask
            removed.callback(beside.unlink, missing_ok=True)
    except OSError as error:
        if before is None or error.errno not in (EACCES, EPERM, EROFS):
            raise
        return _in_place(path, private=private)
    if before is not None:
        _take_over(beside, before, private=private)
    return _File(path, beside, target)


@contextmanager
def signals_blocked() -> Iterator[set[signal.Signals]]:
    """Handle signals that may end the process before or after, not meanwhile.

    Yields the signals that were blocked before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield set()
        return
    before = {
        *map(signal.Signals, signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, *ENDING)))
    }
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _beside(target: Path, named: Path, mode: int) -> Path:
    """Create a file in the folder of another one, under a name that no file has."""
    for number in count():
        name = f".{target.name[:SHOWN_CHARACTERS]}.{os.getpid()}-{number}.part"
        with suppress(FileExistsError):  # of a process that was killed, on this machine or another
            beside = target.with_name(name)
            os.close(_opened(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, named, mode))
            return beside
    raise AssertionError("numbers do not end")


def _in_place(path: Path, *, private: bool) -> _File:
    status = _status(path)
    if private and status is not None and stat.S_ISREG(status.st_mode):
        path.chmod(PRIVATE)
    return _File(path, path, None)


def _target(path: Path) -> Path | None:
    """Follow symbolic links to the file itself; None if one of them names an open descriptor."""
    for _ in range(MAX_LINKS):
        if str(path.parent.resolve()).startswith(DESCRIPTORS):
            return None
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(ELOOP, os.strerror(ELOOP), str(path))


def _status(path: Path) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return path.stat()
    return None


def _opened(path: Path, flags: int, named: Path, mode: int = 0) -> int:
    try:
        return os.open(path, flags, mode)
    except OSError as error:
        error.filename = str(named)
        raise


def _take_over(beside: Path, before: os.stat_result, *, private: bool) -> None:
    """Give a file the owner, if permitted, and the mode of another one."""
    with suppress(PermissionError):
        os.chown(beside, before.st_uid, before.st_gid)
    beside.chmod(PRIVATE if private else stat.S_IMODE(before.st_mode))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name_as_given(error: OSError, files: list[_File]) -> None:
    """Name the file in an error as it was given."""
    for file in files:
        if error.filename in (file.written, str(file.written)):
            error.filename, error.filename2 = str(file.path), None
