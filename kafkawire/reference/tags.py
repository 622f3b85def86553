"""Parses and builds the tagged fields of a struct, known and unknown (KIP-482).

A writer writes them in ascending order, each once, none with its default; a reader accepts any
order, and the last of a repeated known field.

    | count | tag | size | value | tag | size | value | ...
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkawire_codegen import model

from ..errors import InvalidLength, InvalidTag, InvalidValue, OutOfRange, counted
from .defaults import UNKNOWN_TAGS, default_of, is_set, member
from .pieces import UVARINT, NamedPiece, Piece, Run, described, part
from .sized import MAX_LENGTH
from .tree import Node, Sink, Source

TAG: Final = part("tag", "uvarint", UVARINT)
SIZE: Final = part("size", "uvarint", UVARINT)
COUNT: Final = part("count", "uvarint", UVARINT)


class Tagged(NamedTuple):
    """A tagged field of a version, and the construct of its value."""

    field: model.Field
    piece: NamedPiece


class Block(Piece):
    """The block at the end of a struct in a flexible version.

    known: the tagged fields of this version; elsewhere: those of other versions.
    """

    def __init__(self, known: dict[int, Tagged], elsewhere: dict[int, model.Field]) -> None:
        super().__init__()
        self.known = known
        self.elsewhere = elsewhere

    def read(self, source: Source) -> dict[str, Any]:
        values = {f.attribute: default_of(f) for f, _ in self.known.values()}
        unknown: list[tuple[int, bytes]] = []
        node = source.begin("tagged fields", "", "tags")
        met: set[int] = set()
        highest = previous = -1
        count: int = COUNT.read(source)
        if count < 0:
            reason = f"a negative number of tagged fields ({count})"
            if not source.lenient:
                raise source.fault(InvalidLength, reason, node.offset)
            source.flaw(reason, node.offset)
        for _ in range(count):
            entry = source.begin("tagged field", "", "tag")
            flaws = len(source.flaws)
            tag: int = TAG.read(source)
            self.name_entry(entry, tag, len(unknown))
            source.flaws[flaws:] = [f._replace(path=entry.path) for f in source.flaws[flaws:]]
            if tag in met:
                source.flaw(f"tag {tag} stands there twice", entry.offset)
            elif tag < highest:
                source.flaw(f"tag {tag} stands behind tag {highest}", entry.offset)
            source.deviations["unordered_tags"] += tag <= previous
            previous = tag
            met.add(tag)
            highest = max(highest, tag)
            if tag in self.known:
                values[self.known[tag].field.attribute] = self.read_known(tag, entry, source)
            else:
                unknown.append((tag, self.read_unknown(tag, entry, source)))
            source.finish(entry, tag)
        source.finish(node, len(met))
        values[UNKNOWN_TAGS] = unknown or None
        return values

    def name_entry(self, entry: Node, tag: int, unknown: int) -> None:
        """Name a tagged field by its tag."""
        tagged = self.known.get(tag)
        f = self.elsewhere.get(tag) if tagged is None else tagged.field
        entry.name = f"{UNKNOWN_TAGS}[{unknown}]" if f is None else f.attribute
        entry.path += f".{entry.name}"
        entry.children[0].path = entry.path

    def read_known(self, tag: int, entry: Node, source: Source) -> Any:
        f, piece = self.known[tag]
        declared = source.tell()
        size: int = SIZE.read(source)
        start = source.tell()
        value = piece.read(source)
        taken = source.tell() - start
        if taken != size:
            reason = f"a tagged field of {counted(size, 'byte')} takes {taken}"
            bend(source, reason, declared, "wrong_sizes")
        if not is_set(f, value):
            reason = "a tagged field is written although it is at its default"
            source.flaw(reason, entry.offset, "default_tags")
        return value

    def read_unknown(self, tag: int, entry: Node, source: Source) -> bytes:
        size: int = SIZE.read(source)
        if tag in self.elsewhere:
            reason = f"tag {tag} does not exist in this version"
            bend(source, reason, entry.offset, "misplaced_tags")
        source.spend(1, "tagged fields", entry.offset)
        source.spend_objects(1, entry.offset)
        if size < 0:
            raise source.fault(InvalidLength, f"a tagged field of {size} bytes", entry.offset)
        if not 0 <= tag <= MAX_LENGTH:
            reason = f"{tag} is not a tag that can be written"
            source.flaw(reason, entry.offset, "invalid_tags")
        raw: bytes = part("run", "bytes", Run(size)).read(source)
        return raw

    def write(self, value: Any, sink: Sink) -> None:
        fields: list[tuple[int, bytes]] = []
        for tag, (f, piece) in sorted(self.known.items()):
            held = member(value, f.attribute)
            if is_set(f, held, sink.module):
                apart = sink.apart()
                NamedPiece(piece, f.attribute, f".{f.attribute}", "").write(held, apart)
                fields.append((tag, apart.getvalue()))
        unknown = member(value, UNKNOWN_TAGS)
        add_unknown(unknown, fields, sink)
        if not sink.lenient or unknown is None or unknown == sorted(unknown, key=tag_of):
            fields.sort(key=tag_of)
        COUNT.write(len(fields), sink)
        for tag, raw in fields:
            TAG.write(tag & 0xFFFFFFFF, sink)
            SIZE.write(len(raw), sink)
            sink.write(raw)


def tag_of(entry: tuple[int, bytes]) -> int:
    """Return the tag of a tagged field."""
    return entry[0]


def bend(source: Source, reason: str, offset: int, deviations: str) -> None:
    """Raise for what Kafka itself rejects; if lenient, note it."""
    if not source.lenient:
        raise source.fault(InvalidTag, reason, offset)
    source.flaw(reason, offset, deviations)


def add_unknown(unknown: Any, fields: list[tuple[int, bytes]], sink: Sink) -> None:
    """Add the unknown tagged fields of a struct to those to be written."""
    if unknown is None:
        return
    if not isinstance(unknown, list):
        raise sink.fault(InvalidValue, f"{described(unknown)}, not list", f".{UNKNOWN_TAGS}")
    met = {tag for tag, _ in fields}
    for i, entry in enumerate(unknown):
        step = f".{UNKNOWN_TAGS}[{i}]"
        if not is_tag_entry(entry):
            raise sink.fault(InvalidValue, "is not a pair of tag and bytes", step)
        tag, raw = entry
        if not sink.lenient and not 0 <= tag <= MAX_LENGTH:
            raise sink.fault(OutOfRange, f"{tag} is not a valid tag", step)
        if not sink.lenient and tag in met:
            raise sink.fault(InvalidValue, f"tag {tag} is there twice", step)
        met.add(tag)
        fields.append((tag, raw))


def is_tag_entry(entry: Any) -> bool:
    """Whether a value is an unknown tagged field: a tag and its bytes."""
    return isinstance(entry, tuple) and [type(x) for x in entry] == [int, bytes]
