"""Captures in files, decoded a batch of rows at a time; `--jobs N`: by several processes.

Law: what is printed is what one process prints, byte for byte and in the same order; how much waits
is bounded, so memory does not grow with the captures.

    one process     batch by batch, framed, opened and printed
    one file        this process frames and pairs --parcels--> others open and print --> in order
    several files   each is decoded by a process into a file of its own --> in order

What processes print comes back in files: through a pipe it would come in many small pieces, and
for each of them a thread would wait for its turn in a process that is busy.
"""

from __future__ import annotations

import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from . import filters, output
from .captures import Known
from .inputs import Entry, InputError
from .output import Shape, View
from .pipes import tune
from .progress import progress

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from kafkawire.capture.parcels import Parcel, Told
    from kafkawire.capture.row_text import Lines

BATCH_ROWS: Final = 512
"""Rows printed at a time."""

PARCEL_BATCHES: Final = 4
"""Batches that go to another process at a time."""

WAITING: Final = 3
"""Parcels a process has waiting; beyond that, this process opens the next one itself."""

CHUNK: Final = 1 << 20


class Asked(NamedTuple):
    """What to print of each capture: the form, how much of it, which rows, which brokers."""

    form: Shape
    view: View
    wanted: dict[str, list[str]]
    brokers: Known


class Printed(NamedTuple):
    """Text of some rows, encoded for stdout, and whether all of them were decoded byte for byte; or
    what is wrong with a capture.
    """

    text: bytes | memoryview
    clean: bool
    error: InputError | None = None


def decoded(files: Sequence[Path], asked: Asked, jobs: int) -> Iterator[Printed]:
    """Decode captures with so many processes."""
    if jobs == 1:
        for file in files:
            try:
                yield from _here(file, asked)
            except InputError as error:
                yield Printed(b"", True, error)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(
        jobs if len(files) > 1 else jobs - 1, get_context("spawn"), tune
    ) as pool:
        try:
            if len(files) > 1:
                yield from _each(files, asked, pool)
            else:
                with _folder() as folder:
                    most = WAITING * (jobs - 1)
                    yield from _one(files[0], asked, pool, most, Path(folder))
        except InputError as error:
            yield Printed(b"", True, error)
        except BaseException:  # a reader that left, an interrupt: nobody waits for the rest
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def decoded_as_one(files: Sequence[Path], asked: Asked) -> Iterator[Printed]:
    """Decode captures that are one, in the order of their first packets."""
    from kafkawire.capture.parcels import Told
    from kafkawire.capture.tables.traffic import Traffic, place_of
    from kafkawire.errors import CaptureError

    def file_of(told: Told) -> int:
        return place_of(told.item.packet)[0]

    try:
        with progress(files, drawn=_drawn()) as watch:
            traffic = Traffic(
                files, asked.brokers.ports, brokers=asked.brokers.addresses, watch=watch
            )
            for batch in traffic.batches():
                told = [one for one in batch if isinstance(one, Told)]
                for file, some in groupby(told, file_of):
                    name = str(traffic.sources[file])
                    yield _printed(name, [_within(one) for one in some], asked)
    except CaptureError as error:
        yield Printed(b"", True, InputError(str(error)))


def _within(told: Told) -> Told:
    """Number a packet as its file does."""
    from kafkawire.capture.reading import Sealed
    from kafkawire.capture.tables.traffic import place_of

    item = told.item
    number = place_of(item.packet)[1]
    if isinstance(item, Sealed):
        item.packet = number
    else:
        told.item = item._replace(packet=number)
    return told


def _here(file: Path, asked: Asked) -> Iterator[Printed]:
    if asked.form is not Shape.JSONL or asked.wanted:
        for told in _batches(file, asked.brokers, _drawn()):
            yield _printed(str(file), told, asked)
        return
    lines = _lines(str(file), asked.view)
    for told in _batches(file, asked.brokers, _drawn()):
        lines.clean = True
        with lines.view(told) as text:  # printed from where it was written
            yield Printed(text, lines.clean)


def _folder() -> tempfile.TemporaryDirectory[str]:
    # where all ends early, somebody may still be writing there
    return tempfile.TemporaryDirectory(prefix="kafkawire-", ignore_cleanup_errors=True)


def _each(files: Sequence[Path], asked: Asked, pool: ProcessPoolExecutor) -> Iterator[Printed]:
    with _folder() as folder:
        results = [
            pool.submit(_into_file, file, asked, Path(folder, str(at)))
            for at, file in enumerate(files)
        ]
        for at, result in enumerate(results):
            try:
                clean = result.result()
            except InputError as error:
                yield Printed(b"", True, error)
                continue
            path = Path(folder, str(at))
            with path.open("rb") as lines:
                while text := lines.read(CHUNK):
                    yield Printed(text, clean)
            path.unlink()


def _into_file(file: Path, asked: Asked, to: Path) -> bool:
    """Decode a capture into a file of text; says whether all rows are clean."""
    clean = True
    with to.open("wb") as out:
        for told in _batches(file, asked.brokers):
            printed = _printed(str(file), told, asked)
            out.write(printed.text)
            clean = clean and printed.clean
    return clean


class _Away(NamedTuple):
    """Rows that another process prints into a file; whether they are clean, when it has."""

    clean: Future[bool]
    path: Path

    def fetched(self) -> Printed:
        clean = self.clean.result()
        text = self.path.read_bytes()
        self.path.unlink()
        return Printed(text, clean)


def _one(
    file: Path, asked: Asked, pool: ProcessPoolExecutor, most: int, folder: Path
) -> Iterator[Printed]:
    from kafkawire.capture.parcels import pack

    name = str(file)
    waiting: deque[_Away | Printed] = deque()
    busy = 0
    for at, told in enumerate(_parcels(_batches(file, asked.brokers, _drawn()))):
        if busy < most:
            to = folder / str(at)
            waiting.append(_Away(pool.submit(_opened, name, pack(told), asked, to), to))
            busy += 1
        else:
            waiting.append(_printed(name, told, asked))
        while waiting and (len(waiting) > 2 * most or _is_there(waiting[0])):
            first = waiting.popleft()
            if isinstance(first, _Away):
                busy -= 1
                first = first.fetched()
            yield first
    for left in waiting:
        yield left.fetched() if isinstance(left, _Away) else left


def _parcels(batches: Iterator[list[Told]]) -> Iterator[list[Told]]:
    while some := list(islice(batches, PARCEL_BATCHES)):
        yield list(chain.from_iterable(some))


def _is_there(one: _Away | Printed) -> bool:
    return one.clean.done() if isinstance(one, _Away) else True


def _opened(name: str, parcel: Parcel, asked: Asked, to: Path) -> bool:
    """Print what is in a parcel into a file; runs in another process."""
    from kafkawire.capture.parcels import unpack

    printed = _printed(name, unpack(parcel), asked)
    to.write_bytes(printed.text)
    return printed.clean


def _printed(name: str, told: list[Told], asked: Asked) -> Printed:
    from kafkawire.capture.engine import located

    if asked.form is Shape.JSONL and not asked.wanted:
        lines = _lines(name, asked.view)
        lines.clean = True
        return Printed(lines.text(told), lines.clean)
    text = output.text(asked.form, asked.view)
    clean = True
    texts = []
    for one in told:
        found = located(one)
        entry = Entry(name, found.connection, found.client, found.broker, found.row)
        if not asked.wanted or filters.keeps(asked.wanted, entry):
            clean = clean and entry.row.status == "ok"
            texts.append(text(entry))
    stdout = sys.stdout
    return Printed("".join(texts).encode(stdout.encoding, stdout.errors or "strict"), clean)


@lru_cache(maxsize=1)
def _lines(name: str, view: View) -> Lines:
    from kafkawire.capture.row_text import Lines

    return Lines(name, *view)


def _drawn() -> bool:
    return not sys.stdout.isatty()  # rows on the terminal, and a bar would stand among them


def _batches(file: Path, brokers: Known, drawn: bool = False) -> Iterator[list[Told]]:
    """Read a capture, some rows at a time."""
    from kafkawire.capture.engine import read_batches
    from kafkawire.errors import CaptureError

    try:
        with progress([file], drawn=drawn) as watch:
            for told in read_batches(
                file, ports=brokers.ports, brokers=brokers.addresses, watch=watch
            ):
                for at in range(0, len(told), BATCH_ROWS):
                    yield told[at : at + BATCH_ROWS]
    except CaptureError as error:
        raise InputError(f"{file}: {error}") from None
