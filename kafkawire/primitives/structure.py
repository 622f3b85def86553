"""What every generated class shares: equality, repr, copies and pickles, driven by
`__match_args__`.

Law: two instances are equal when their classes and all their fields are; how an instance was built
(compiled or interpreted, decoded or constructed) shows nowhere.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

from mypy_extensions import mypyc_attr

from .failure import encode_failure
from .writer import Writer

ZERO_UUID: Final = bytes(16)

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
    """What lenient decoding had to bend to accept a message.

    trailing: bytes after the last field; invalid_text: strings that are not UTF-8 (kept by
    surrogateescape); misplaced_tags: known tagged fields at a version without them (kept as
    unknown) or with a wrong declared size.
    """

    trailing: bytes = b""
    invalid_text: int = 0
    misplaced_tags: int = 0

    def __str__(self) -> str:
        said = []
        if self.trailing:
            said.append(f"{len(self.trailing)} trailing bytes")
        if self.invalid_text:
            said.append(f"{self.invalid_text} strings that are not UTF-8")
        if self.misplaced_tags:
            said.append(f"{self.misplaced_tags} tagged fields out of place")
        return ", ".join(said)


def rebuild(cls: Callable[..., Any], values: list[Any], bent: Bent | None = None) -> Any:
    """Make an instance from its field values in `__match_args__` order (what a pickle calls)."""
    made = cls(**dict(zip(cls.__match_args__, values, strict=True)))  # type: ignore[attr-defined]
    if bent is not None:
        made.bent = bent
    return made


# allow_interpreted_subclasses: an interpreted message must be able to stand on a compiled Structure
# (a `hot` build)
@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Structure:
    """A struct of some message: keyword-only constructor, one attribute a field, in wire order."""

    __match_args__: ClassVar[tuple[str, ...]] = ()
    __fields__: ClassVar[tuple[FieldRow, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__match_args__)

    def __ne__(self, other: object) -> bool:  # else each class would be compiled with its own
        return not self == other

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # the default pickled state differs between compiled, slotted and plain classes, and loading
        # one as another loses every value silently
        return rebuild, (type(self), [getattr(self, name) for name in self.__match_args__])

    def __repr__(self) -> str:
        inner = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__match_args__])
        return f"{type(self).__name__}({inner})"


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Message(Structure):
    """A whole message: a struct that can be decoded and encoded by itself."""

    bent: Bent | None

    def encode(self, version: int, *, lenient: bool = False) -> bytes:
        """Write the message as that version; EncodeError names the field that cannot be.

        lenient: write text that a lenient decode kept as it was, and the bytes that trailed.
        """
        w = Writer(lenient=lenient)
        try:
            self.encode_to(w, version)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            module = type(self).__module__
            raise encode_failure(error, module, self, version, lenient) from None
        bent = self.bent
        if lenient and bent is not None and bent.trailing:
            return w.getvalue() + bent.trailing
        return w.getvalue()

    def encode_to(self, w: Writer, version: int) -> None:  # noqa: ARG002
        """Write the message behind what the writer holds; errors are the writer's own."""
        raise TypeError(f"{type(self).__name__} is not a generated message")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        values = [getattr(self, name) for name in self.__match_args__]
        return rebuild, (type(self), values, self.bent)
