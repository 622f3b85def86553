"""What every generated class shares: equality, repr, copies and pickles, driven by
`__match_args__`.

Law: two instances are equal when their classes and all their fields are; how an instance was built
(compiled or interpreted, decoded or constructed) shows nowhere.

A class may be compiled by another project's build, which knows nothing of the classes here: what
mypyc lays out for it, and its table of methods, begin anew. So the methods here reach an instance
by the names of its attributes alone (`Any`): code compiled here that took an offset or a method's
place for granted would read the memory of another class. Only `LinkedMessage` may.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

from mypy_extensions import mypyc_attr

from .failure import encode_failure
from .writer import Writer

ZERO_UUID: Final = bytes(16)

NO_SLOTS: Final[tuple[str, ...]] = ()
"""`__slots__` by a name that type checkers do not read: `Message` declares `bent` beside it."""

EMPTY: Final[Any] = []
"""What an array parameter defaults to: stands for a list made afresh, and is never stored."""

Tags = list[tuple[int, bytes]] | None
"""Unknown tagged fields of one struct, as (tag, raw bytes), in the order met; None where there are
none.
"""


class FieldRow(NamedTuple):
    """One field, as table-driven code needs it.

    attribute: its Python name; json_name: its name in Kafka's JSON form.
    type: a primitive of the schema dialect or a struct's name, after `[]` where it is an array.
    first, last: the versions that have it, both included.
    tag: its tag, or -1.
    entity_type: what the value identifies, as schemas write it (topicName, groupId, brokerId, ...);
    "" where they do not say.
    """

    attribute: str
    json_name: str
    type: str
    first: int
    last: int
    tag: int
    entity_type: str = ""


def field_rows(text: str) -> tuple[FieldRow, ...]:
    """Read the rows that generated code has: a line each, its words the columns of FieldRow in
    order. The tag, a number, and the entity type, a name, are left out where a field has none.
    Compiled, a line takes no code, where a call with seven arguments would.
    """
    rows: list[FieldRow] = []
    for line in text.splitlines():
        attribute, json_name, type, first, last, *rest = line.split()
        tag = int(rest.pop(0)) if rest and rest[0].isdigit() else -1
        entity_type = rest[0] if rest else ""
        rows.append(FieldRow(attribute, json_name, type, int(first), int(last), tag, entity_type))
    return tuple(rows)


class Bent(NamedTuple):
    """In what the bytes of a message that was decoded leniently differ from what an encoder writes.

    trailing: bytes after the last field. The others are counts:
    invalid_text: strings that are not UTF-8 (kept by surrogateescape).
    misplaced_tags: known tagged fields at a version without them (kept as unknown).
    wrong_sizes: known tagged fields whose declared size is not the size of their value.
    unordered_tags: tagged fields whose tag is not greater than that of the field before them.
    default_tags: known tagged fields that are written although at their default.
    invalid_tags: unknown tagged fields whose tag no encoder writes (2147483647, or negative).
    long_varints: varints of more bytes than needed, or from 2**31 on.
    odd_values: bools and markers of null other than Kafka's, nulls as a length below -1.
    """

    trailing: bytes = b""
    invalid_text: int = 0
    misplaced_tags: int = 0
    wrong_sizes: int = 0
    unordered_tags: int = 0
    default_tags: int = 0
    invalid_tags: int = 0
    long_varints: int = 0
    odd_values: int = 0

    @property
    def is_lossless(self) -> bool:
        """Whether `encode(version, lenient=True)` is sure to write the bytes that were decoded."""
        return not any(getattr(self, name) for name in NOT_KEPT)

    def __str__(self) -> str:
        counts = (len(self.trailing), *self[1:])
        return ", ".join(
            f"{n} {one if n == 1 else many}"
            for n, (one, many) in zip(counts, DEVIATIONS, strict=True)
            if n
        )


NOT_KEPT: Final = (
    "wrong_sizes",
    "unordered_tags",
    "default_tags",
    "long_varints",
    "odd_values",
)
"""Deviations of which a message only knows the count: they are encoded as any other value."""

DEVIATIONS: Final = (
    ("trailing byte", "trailing bytes"),
    ("string that is not UTF-8", "strings that are not UTF-8"),
    ("tagged field unknown in this version", "tagged fields unknown in this version"),
    ("tagged field with a wrong size", "tagged fields with a wrong size"),
    ("tagged field out of order", "tagged fields out of order"),
    ("tagged field at its default", "tagged fields at their defaults"),
    ("tagged field with an invalid tag", "tagged fields with an invalid tag"),
    ("varint longer than needed or too large", "varints longer than needed or too large"),
    ("value in an unusual form", "values in an unusual form"),
)
"""What `str` calls one, and several, of each kind of deviation, in the order of Bent's fields."""


def rebuild(cls: Callable[..., Any], values: list[Any], bent: Bent | None = None) -> Any:
    """Make an instance from its field values in `__match_args__` order (what a pickle calls)."""
    made = cls(**dict(zip(cls.__match_args__, values, strict=True)))  # type: ignore[attr-defined]
    if bent is not None:
        made.bent = bent
    return made


# allow_interpreted_subclasses: an interpreted message must be able to stand on a compiled Structure
# (a `hot` build). No slots: an interpreted Structure adds nothing to a compiled message either
@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Structure:
    """A struct of some message: keyword-only constructor, one attribute a field, in wire order."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    __fields__: ClassVar[tuple[FieldRow, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = type(self).__match_args__
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __ne__(self, other: object) -> bool:  # else each class would be compiled with its own
        this: Any = self
        return not this == other

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # the default pickled state differs between compiled, slotted and plain classes, and loading
        # one as another loses every value silently
        names = type(self).__match_args__
        return rebuild, (type(self), [getattr(self, name) for name in names])

    def __repr__(self) -> str:
        names = type(self).__match_args__
        inner = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__name__}({inner})"


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Message(Structure):
    """A whole message: a struct that can be decoded and encoded by itself."""

    __slots__ = NO_SLOTS

    bent: Bent | None  # for type checkers; each generated class stores its own

    def encode(self, version: int, *, lenient: bool = False) -> bytes:
        """Write the message as that version; EncodeError names the field that cannot be.

        lenient: write what a lenient decode accepted: the same bytes again where `bent` is None or
        `bent.is_lossless`, else the same values in the form that an encoder gives them.
        """
        message: Any = self
        w = Writer(lenient=lenient)
        try:
            message.encode_to(w, version)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            module = type(self).__module__
            raise encode_failure(error, module, message, version, lenient) from None
        return encoded(w, message) if lenient else w.getvalue()

    def encode_to(self, w: Writer, version: int) -> None:  # noqa: ARG002
        """Write the message behind what the writer holds; errors are the writer's own."""
        raise TypeError(f"{type(self).__name__} is not a generated message")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        message: Any = self
        values = [getattr(message, name) for name in type(self).__match_args__]
        return rebuild, (type(self), values, message.bent)


def encoded(w: Writer, message: Any) -> bytes:
    """Return what a lenient writer holds of a message, and the bytes that trailed it."""
    bent: Bent | None = message.bent
    if bent is not None and bent.trailing:
        return w.getvalue() + bent.trailing
    return w.getvalue()


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class LinkedMessage(Message):
    """A message of a package that is only ever compiled together with this module.

    A sixth of the time that a small message takes is saved where `encode_to` is called by its place
    rather than by its name.
    """

    __slots__ = NO_SLOTS

    def encode(self, version: int, *, lenient: bool = False) -> bytes:
        w = Writer(lenient=lenient)
        try:
            self.encode_to(w, version)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            module = type(self).__module__
            raise encode_failure(error, module, self, version, lenient) from None
        return encoded(w, self) if lenient else w.getvalue()
