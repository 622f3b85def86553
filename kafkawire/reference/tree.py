"""The tree that a message is: a node for every run of bytes, with its place in the message.

Law: the leaves of a tree, in order, are the bytes from its first to its last, each exactly once; a
node whose bytes could not be made sense of is not closed and has no leaf for them.

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

from ..errors import DecodeError, EncodeError, LimitExceeded, Truncated
from ..primitives.limits import FREE_OBJECTS, NO_LIMITS, UNLIMITED, Limits


class Flaw(NamedTuple):
    """One way in which bytes differ from what an encoder writes: what, in which field, where."""

    reason: str
    path: str
    offset: int

    def __str__(self) -> str:
        return f"{self.path}: {self.reason} (at byte {self.offset})"


@dataclass(slots=True, eq=False)
class Node:
    """A run of bytes and what it stands for.

    name: the attribute, `[3]`, or what else stands there (`length`, `count`, `tag`, `marker`).
    path: the field it belongs to; type: its wire type; value: what it decodes to.
    raw: its bytes, children's included; closed: whether it was decoded to its end. secret: whether
    bytes and value are not to be shown.
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
        """Yield the node and all below it, in the order of their bytes."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Node]:
        """Yield the decoded nodes without children that have bytes, in order."""
        return (n for n in self.walk() if n.closed and n.raw and not n.children)


class Source(BytesIO):
    """The stream a construct parses from: grows the tree, counts what limits bound, collects flaws.

    lenient: note what a strict decode refuses, and go on.
    bent: how often each deviation was met, under the name of its field in `Bent`.
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
        self.bent: Counter[str] = Counter()
        self.opened: list[Node] = []

    @property
    def left(self) -> int:
        return len(self.data) - self.tell()

    @property
    def path(self) -> str:
        return self.opened[-1].path if self.opened else ""

    def begin(self, name: str, step: str, type: str) -> Node:
        """Begin a node where the stream stands; `step` is what it adds to the path."""
        node = Node(name, self.path + step, type, self.tell())
        if self.opened:
            self.opened[-1].children.append(node)
        self.opened.append(node)
        return node

    def finish(self, node: Node, value: object) -> None:
        """End a node where the stream stands."""
        node.raw = self.data[node.offset : self.tell()]
        node.value = value
        node.closed = True
        self.opened.pop()

    def spend(self, elements: int, what: str, offset: int) -> None:
        """Take elements from the budget; LimitExceeded when it is gone."""
        self.elements -= elements
        if self.elements < 0:
            raise self.fault(LimitExceeded, f"more {what} than max_elements allows", offset)

    def spend_objects(self, objects: int, offset: int) -> None:
        """Take objects from the budget, which follows from the size of the data."""
        self.objects -= objects
        if self.objects < 0:
            raise self.fault(LimitExceeded, "more objects than bytes_per_object allows", offset)

    def flaw(self, reason: str, offset: int, bent: str = "") -> None:
        """Note a deviation; bent: the field of `Bent` that counts it, "" where another does."""
        self.flaws.append(Flaw(reason, self.path, offset))
        if bent:
            self.bent[bent] += 1

    def fault(self, kind: type[DecodeError], reason: str, offset: int) -> DecodeError:
        return kind(reason, self.path, offset)

    def truncated(self, wanted: int) -> DecodeError:
        reason = f"{wanted} bytes wanted, {self.left} left"
        return self.fault(Truncated, reason, len(self.data))


class Sink(BytesIO):
    """The stream a construct builds into: knows which field is being written.

    lenient: write text that a lenient decode kept by surrogateescape as the bytes it was.
    module: the module whose classes the structs are of; None where they are dicts.
    """

    def __init__(
        self, steps: list[str], *, lenient: bool = False, module: str | None = None
    ) -> None:
        super().__init__()
        self.steps = steps
        self.lenient = lenient
        self.module = module

    def apart(self) -> Sink:
        """Make an empty stream for a part whose size goes in front of it; same place, same mode."""
        return Sink(self.steps, lenient=self.lenient, module=self.module)

    def fault(self, kind: type[EncodeError], reason: str, step: str = "") -> EncodeError:
        return kind(reason, "".join(self.steps) + step)
