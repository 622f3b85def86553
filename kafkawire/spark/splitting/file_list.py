"""Many files as columns: a sequence that takes some 60 bytes for each file.

It behaves as a sequence of `InputFile`; a file is made when it is used. Folders, stores and
directories are in memory once, however many files they have.

    /data/day/a.pcap  812  ...    folders: /data/day/    names: a.pcap b.pcap    sizes: 812 903
    /data/day/b.pcap  903  ...
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import eq
from typing import Final, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ...capture.files.columns import Ints
from .stores import InputFile, Store

T = TypeVar("T")
Indexes: TypeAlias = npt.NDArray[np.int32]

UNKNOWN: Final = -(1 << 63)
"""The modification time of a file whose time is unknown."""

RECENT: Final = 256
"""Values that `recent` remembers."""


class LazySequence(Sequence[T]):
    """A sequence that makes its values when they are used; it equals any with the same values."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self.value(each) for each in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.value(index % len(self))

    def __iter__(self) -> Iterator[T]:
        return map(self.value, range(len(self)))

    @abstractmethod
    def value(self, index: int) -> T:
        """Make the value at an index, which is valid."""


def recent(values: Sequence[T]) -> Callable[[int], T]:
    """Return a function that gets values by index and remembers some of them."""
    return lru_cache(maxsize=RECENT)(values.__getitem__)


@dataclass(frozen=True, eq=False)
class Texts(LazySequence[str]):
    """Strings as columns.

    heads: what strings have up to their last slash; codes: the head of each string. tails: what
    follows, in UTF-8, one after the other; starts: where each begins, and the end of the last one.
    """

    heads: tuple[str, ...]
    codes: Indexes
    starts: Ints
    tails: bytes

    def __len__(self) -> int:
        return len(self.codes)

    def value(self, index: int) -> str:
        """Make a string."""
        tail = self.tails[self.starts[index] : self.starts[index + 1]]
        text: str = self.heads[self.codes[index]] + tail.decode("utf-8", "surrogatepass")
        return text

    def take(self, rows: Ints | Indexes) -> Texts:
        """Select strings."""
        sizes = self.starts[rows + 1] - self.starts[rows]
        tails = b"".join(
            [self.tails[self.starts[row] : self.starts[row + 1]] for row in rows.tolist()]
        )
        return Texts(self.heads, self.codes[rows], np.append(0, np.cumsum(sizes)), tails)


class TextBuilder:
    """Collects strings."""

    def __init__(self) -> None:
        self._heads: dict[str, int] = {}
        self._codes = array("i")
        self._starts = array("q", [0])
        self._tails = bytearray()

    def add(self, text: str) -> None:
        """Add a string."""
        end = text.rfind("/") + 1
        self._codes.append(self._heads.setdefault(text[:end], len(self._heads)))
        self._tails += text[end:].encode("utf-8", "surrogatepass")
        self._starts.append(len(self._tails))

    def build(self) -> Texts:
        """Return the strings."""
        starts = np.frombuffer(self._starts, np.int64)
        return Texts(
            (*self._heads,), np.frombuffer(self._codes, np.int32), starts, bytes(self._tails)
        )


class Origin(NamedTuple):
    """The store of a file, and the directory in which it was found."""

    store: Store
    directory: str


@dataclass(frozen=True, eq=False)
class FileList(LazySequence[InputFile]):
    """Files as columns; see `InputFile`.

    paths: the same object as `names` if they are equal. origins: the distinct ones, in the order in
    which they occur first; codes: the origin of each file.
    """

    names: Texts
    paths: Texts
    sizes: Ints
    modified: Ints
    origins: tuple[Origin, ...]
    codes: Indexes
    tunnels: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return int(self.sizes.sum())

    @property
    def is_local(self) -> bool:
        """Whether the operating system opens all of them."""
        return all(origin.store.is_local for origin in self.origins)

    def __len__(self) -> int:
        return len(self.sizes)

    def value(self, index: int) -> InputFile:
        """Make a file."""
        name = self.names.value(index)
        path = name if self.paths is self.names else self.paths.value(index)
        store, directory = self.origins[self.codes[index]]
        modified = int(self.modified[index])
        return InputFile(
            name,
            path,
            int(self.sizes[index]),
            None if modified == UNKNOWN else modified,
            store,
            directory,
            self.tunnels,
        )

    def take(self, rows: Ints | Indexes) -> FileList:
        """Select files."""
        if len(rows) == len(self) and (rows == np.arange(len(self))).all():
            return self
        names = self.names.take(rows)
        return FileList(
            names,
            names if self.paths is self.names else self.paths.take(rows),
            self.sizes[rows],
            self.modified[rows],
            self.origins,
            self.codes[rows],
            self.tunnels,
        )


def file_list(files: Iterable[InputFile]) -> FileList:
    """Collect files, each name once: the first file that has it."""
    names, paths, differ = TextBuilder(), TextBuilder(), False
    sizes, modified, hashes, codes = array("q"), array("q"), array("q"), array("i")
    origins: dict[Origin, int] = {}
    last: tuple[Store, str] | None = None
    for file in files:
        names.add(file.name)
        if not differ and file.path != file.name:
            differ = True
            for name in names.build()[:-1]:
                paths.add(name)
        if differ:
            paths.add(file.path)
        sizes.append(file.size)
        modified.append(UNKNOWN if file.modified_ns is None else file.modified_ns)
        hashes.append(hash(file.name))
        if last is None or last[0] is not file.store or last[1] is not file.directory:
            last = file.store, file.directory
            code = origins.setdefault(Origin(*last), len(origins))
        codes.append(code)
    texts = names.build()
    listed = FileList(
        texts,
        paths.build() if differ else texts,
        np.frombuffer(sizes, np.int64),
        np.frombuffer(modified, np.int64),
        (*origins,),
        np.frombuffer(codes, np.int32),
    )
    return listed.take(_first_of_each(listed.names, np.frombuffer(hashes, np.int64)))


def _first_of_each(names: Texts, hashes: Ints) -> Ints:
    """Return where each name occurs first; few names are compared."""
    ordered = np.sort(hashes)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    several = np.flatnonzero(np.isin(hashes, repeated)) if len(repeated) else repeated
    seen: set[str] = set()
    keep = np.ones(len(names), bool)
    for index in several.tolist():
        name = names.value(index)
        keep[index] = name not in seen
        seen.add(name)
    return np.flatnonzero(keep)
