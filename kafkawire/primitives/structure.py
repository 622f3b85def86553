"""Base classes of generated code: equality, repr, copies and pickles, by `__match_args__`.

Two instances are equal when their classes and all their fields are; it makes no difference
whether an instance is compiled or interpreted, decoded or constructed.

A class may be compiled by another project's build, without the classes here: mypyc then gives it a
layout and a method table of its own. So the methods here access an instance by attribute names only
(`Any`): compiled code with fixed offsets would read the memory of another class. Only
`LinkedMessage` may use offsets.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

from mypy_extensions import mypyc_attr

from .failure import encode_failure
from .writer import Writer

ZERO_UUID: Final = bytes(16)

NO_SLOTS: Final[tuple[str, ...]] = ()
"""`__slots__` under a name that type checkers ignore: `Message` declares `deviations` beside it."""

EMPTY: Final[Any] = []
"""The default of an array parameter: a placeholder for a new list, never stored."""


class FieldRow(NamedTuple):
    """One field, for table-driven code.

    attribute: its Python name; json_name: its name in Kafka's JSON form.
    type: a primitive of the schema dialect or a struct's name, after `[]` for an array.
    first, last: the versions that have it, both included.
    tag: its tag, or -1.
    entity_type: what the value identifies, as schemas write it (topicName, groupId, brokerId, ...);
    "" if unknown.
    nullable: the versions in which it may be null, both included; None if it never is.
    tagged: those in which it is a tagged field, if they are not all that have it.
    compact: those in which its length is compact, if they are not the flexible ones.
    """

    attribute: str
    json_name: str
    type: str
    first: int
    last: int
    tag: int
    entity_type: str = ""
    nullable: tuple[int, int] | None = None
    tagged: tuple[int, int] | None = None
    compact: tuple[int, int] | None = None


def field_rows(text: str) -> tuple[FieldRow, ...]:
    """Read the rows of generated code: one per line, its words the columns of FieldRow in order.

    The last five are optional. The tag is a number and the entity type a name; versions follow
    `?` where they are those of `nullable`, `#` of `tagged` and `~` of `compact` (`~1-0`: none). A
    line takes no compiled code; a call with ten arguments would.
    """
    return tuple([_field_row(*line.split()) for line in text.splitlines()])


def _field_row(
    attribute: str, json_name: str, type: str, first: str, last: str, *more: str
) -> FieldRow:
    tag, entity_type = -1, ""
    versions: dict[str, tuple[int, int]] = {}
    for word in more:
        if word[0] in "?#~":
            low, _, high = word[1:].partition("-")
            versions[word[0]] = int(low), int(high)
        elif word.isdigit():
            tag = int(word)
        else:
            entity_type = word
    return FieldRow(
        attribute,
        json_name,
        type,
        int(first),
        int(last),
        tag,
        entity_type,
        versions.get("?"),
        versions.get("#"),
        versions.get("~"),
    )


class Deviations(NamedTuple):
    """How the bytes of a leniently decoded message differ from those that an encoder writes.

    trailing: bytes after the last field. The others are counts:
    invalid_text: strings that are not UTF-8 (kept by surrogateescape).
    misplaced_tags: known tagged fields at a version without them (kept as unknown).
    wrong_sizes: known tagged fields with a wrong declared size.
    unordered_tags: tagged fields whose tag is not greater than that of the field before them.
    default_tags: known tagged fields with their default value.
    invalid_tags: unknown tagged fields with an invalid tag (2147483647, or negative).
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
        """Whether `encode(version, lenient=True)` writes the bytes that were decoded."""
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
"""Deviations that are only counted: such values are encoded as any other."""

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
"""Singular and plural of each deviation for `str`, in the order of Deviations's fields."""


def rebuild(
    cls: Callable[..., Any], values: list[Any], deviations: Deviations | None = None
) -> Any:
    """Make an instance from its field values in `__match_args__` order (called by pickles)."""
    instance = cls(**dict(zip(cls.__match_args__, values, strict=True)))  # type: ignore[attr-defined]
    if deviations is not None:
        instance.deviations = deviations
    return instance


# allow_interpreted_subclasses: an interpreted message may have a compiled Structure as its base
# (a `hot` build). No slots: an interpreted Structure adds nothing to a compiled message either
@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Structure:
    """A struct of a message: keyword-only constructor, one attribute per field, in wire order."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    __fields__: ClassVar[tuple[FieldRow, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = type(self).__match_args__
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __ne__(self, other: object) -> bool:  # otherwise each class would be compiled with its own
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
    """A message: a struct that can be decoded and encoded by itself."""

    __slots__ = NO_SLOTS

    deviations: Deviations | None  # for type checkers; each generated class stores its own

    def encode(self, version: int, *, lenient: bool = False) -> bytes:
        """Encode the message in a version; EncodeError names the field that cannot be encoded.

        lenient: accept everything that a lenient decode returns: writes the same bytes if
        `deviations` is None or lossless, otherwise the same values in an encoder's form.
        """
        message: Any = self
        w = Writer(lenient=lenient)
        try:
            message.encode_to(w, version)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            module = type(self).__module__
            raise encode_failure(error, module, message, version, lenient) from None
        return encoded(w, message) if lenient else w.getvalue()

    def encode_buffers(self, version: int, *, lenient: bool = False) -> list[bytes]:
        """Encode the message in pieces, for `writelines` or `socket.sendmsg`.

        Joined they are what `encode` returns. Values of bytes fields from 64 KiB on are not copied:
        they are pieces as they are.
        """
        message: Any = self
        w = Writer(lenient=lenient)
        try:
            message.encode_to(w, version)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            module = type(self).__module__
            raise encode_failure(error, module, message, version, lenient) from None
        return [*w.getbuffers(), *trailing(message)] if lenient else w.getbuffers()

    def encode_to(self, w: Writer, version: int) -> None:  # noqa: ARG002
        """Append the message to the writer; errors are the writer's own."""
        raise TypeError(f"{type(self).__name__} is not a generated message")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        message: Any = self
        values = [getattr(message, name) for name in type(self).__match_args__]
        return rebuild, (type(self), values, message.deviations)


def encoded(w: Writer, message: Any) -> bytes:
    """Return the bytes of a lenient writer, with the message's trailing bytes."""
    return b"".join([w.getvalue(), *trailing(message)])


def trailing(message: Any) -> list[bytes]:
    """List the bytes after the last field of a leniently decoded message."""
    deviations: Deviations | None = message.deviations
    return [] if deviations is None or not deviations.trailing else [deviations.trailing]


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class LinkedMessage(Message):
    """A message of a package that is always compiled together with this module.

    Calling `encode_to` by its offset rather than by its name saves a sixth of the time of a small
    message.
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

    def encode_buffers(self, version: int, *, lenient: bool = False) -> list[bytes]:
        w = Writer(lenient=lenient)
        try:
            self.encode_to(w, version)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            module = type(self).__module__
            raise encode_failure(error, module, self, version, lenient) from None
        return [*w.getbuffers(), *trailing(self)] if lenient else w.getbuffers()
