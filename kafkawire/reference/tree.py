"""The tree of a message: a node for every run of bytes, with its field.

The leaves of a tree, in order, are its bytes, each exactly once; a node whose bytes could not
be decoded is not closed and has no leaf for them.

    FetchRequest                     0  62 bytes
    |-- replica_id                   0  ff ff ff ff   int32   -1
    `-- topics                       4                []FetchTopic
        |-- count                    4  00 00 00 01   int32   1
        `-- [0]                      8
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import NamedTuple

from ..errors import DecodeError, EncodeError, LimitExceeded, Truncated, counted
from ..primitives.limits import FREE_OBJECTS, NO_LIMITS, UNLIMITED, Limits


class Flaw(NamedTuple):
    """A deviation from the bytes that an encoder writes: what, in which field, where."""

    reason: str
    path: str
    offset: int

    def __str__(self) -> str:
        return f"{self.path}: {self.reason} (at byte {self.offset})"


@dataclass(slots=True, eq=False)
class Node:
    """A run of bytes and its meaning.

    name: the attribute, `[3]`, or a part (`length`, `count`, `tag`, `marker`). path: its field;
    type: its wire type; value: its decoded value. raw: its bytes, children's included; closed:
    whether it was decoded to its end. secret: whether bytes and value are hidden.
    """

    name: str
    path: str
    type: str
    offset: int
    raw: bytes = b""
    value: object = None
    closed: bool = False
    secret: bool = False
    children: list[Node] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.raw)

    @property
    def end(self) -> int:
        return self.offset + len(self.raw)

    def walk(self) -> Iterator[Node]:
        """Yield the node and its descendants, in the order of their bytes."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Node]:
        """Yield the decoded nodes without children that have bytes, in order."""
        return (n for n in self.walk() if n.closed and n.raw and not n.children)


class Source(BytesIO):
    """The stream that a construct parses: adds to the tree, counts against limits, collects flaws.

    lenient: note errors of a strict decode, and continue. deviations: the count of each, by its
    field in `Deviations`.
    """

    def __init__(
        self,
        data: bytes,
        start: int = 0,
        *,
        lenient: bool = False,
        limits: Limits = NO_LIMITS,
    ) -> None:
        super().__init__(data)
        self.seek(start)
        self.data = data
        self.lenient = lenient
        self.elements = limits.max_elements
        each = limits.bytes_per_object
        self.objects = FREE_OBJECTS + (len(data) // each if each else UNLIMITED)
        self.flaws: list[Flaw] = []
        self.deviations: Counter[str] = Counter()
        self.opened: list[Node] = []

    @property
    def left(self) -> int:
        return len(self.data) - self.tell()

    @property
    def path(self) -> str:
        return self.opened[-1].path if self.opened else ""

    def begin(self, name: str, step: str, type: str) -> Node:
        """Begin a node at the stream's position; `step` is its part of the path."""
        node = Node(name, self.path + step, type, self.tell())
        if self.opened:
            self.opened[-1].children.append(node)
        self.opened.append(node)
        return node

    def finish(self, node: Node, value: object) -> None:
        """End a node at the stream's position."""
        node.raw = self.data[node.offset : self.tell()]
        node.value = value
        node.closed = True
        self.opened.pop()

    def spend(self, elements: int, what: str, offset: int) -> None:
        """Take elements from the budget; LimitExceeded if it is exhausted."""
        self.elements -= elements
        if self.elements < 0:
            raise self.fault(LimitExceeded, f"more {what} than max_elements allows", offset)

    def spend_objects(self, objects: int, offset: int) -> None:
        """Take objects from the budget, which follows from the size of the data."""
        self.objects -= objects
        if self.objects < 0:
            raise self.fault(LimitExceeded, "more objects than bytes_per_object allows", offset)

    def flaw(self, reason: str, offset: int, deviations: str = "") -> None:
        """Note a deviation; deviations: the field of `Deviations` that counts it, "" if none."""
        self.flaws.append(Flaw(reason, self.path, offset))
        if deviations:
            self.deviations[deviations] += 1

    def fault(self, kind: type[DecodeError], reason: str, offset: int) -> DecodeError:
        return kind(reason, self.path, offset)

    def truncated(self, wanted: int) -> DecodeError:
        reason = f"{counted(wanted, 'byte')} wanted, {self.left} left"
        return self.fault(Truncated, reason, len(self.data))


class Sink(BytesIO):
    """The stream that a construct writes: knows the current field.

    lenient: write text kept by surrogateescape as its original bytes. module: the module of the
    structs' classes; None if they are dicts.
    """

    def __init__(
        self, steps: list[str], *, lenient: bool = False, module: str | None = None
    ) -> None:
        super().__init__()
        self.steps = steps
        self.lenient = lenient
        self.module = module

    def apart(self) -> Sink:
        """Make an empty stream for a part with a leading size; same field, same mode."""
        return Sink(self.steps, lenient=self.lenient, module=self.module)

    def fault(self, kind: type[EncodeError], reason: str, step: str = "") -> EncodeError:
        return kind(reason, "".join(self.steps) + step)
