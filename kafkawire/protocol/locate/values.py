"""Walks over a message in wire order to the first value that cannot be encoded.

Its errors are those of the encoder, in the same order, with the reasons of the reference
codec's `encode`; it writes nothing.

    struct  | value | ... | absent field | ... | unknown tags |      a Check looks at one value

Whether a field may be set in a version without it is not in the fields' rows: the encoder's own
error names the struct and the field, and the walk finds which of the structs it is (`unfit`). That
error names nothing where an array's place has no list, or a struct's place no such struct: such a
field is what remains (`suspect`) if nothing else is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ...errors import EncodeError, FieldNotInVersion, InvalidValue, NullNotAllowed, OutOfRange
from .walk import MAX_STRING, UNKNOWN_TAGS

MAX_LENGTH: Final = 2**31 - 2
MAX_SHOWN_BITS: Final = 128
UUID_BYTES: Final = 16


class Values:
    """A path into a message.

    module: of the classes of its structs. unfit: `Struct.attribute` of a field that is set in a
    version without it, "" for none. suspect: the error of a field that may not be set either, if it
    is not ignored.
    """

    def __init__(self, name: str, module: str, lenient: bool, unfit: str) -> None:
        self.module = module
        self.lenient = lenient
        self.unfit = unfit
        self.steps = [name]
        self.suspect: EncodeError | None = None

    def fault(self, kind: type[EncodeError], reason: str) -> EncodeError:
        return kind(reason, "".join(self.steps))

    def mistyped(self, value: object, wanted: str) -> EncodeError:
        return self.fault(InvalidValue, f"is of type {type(value).__name__}, not {wanted}")

    def struct(self, value: Any, layout: Layout) -> None:
        """Check a struct, its fields and its tagged fields."""
        if value is None:
            raise self.fault(NullNotAllowed, "is None, and not nullable in that version")
        if not layout.fits(value, self.module):
            raise self.mistyped(value, layout.name)
        for step, attribute, check in layout.fields:
            self.steps.append(step)
            check(self, getattr(value, attribute))
            self.steps.pop()
        if layout.is_flexible:
            self.tags(value, layout)

    def tags(self, value: Any, layout: Layout) -> None:
        """Check the tagged fields that are set, then the unknown ones."""
        met: set[int] = set()
        for tag, default, (step, attribute, check) in layout.tagged:
            held = getattr(value, attribute)
            if is_set(held, default, self.module):
                met.add(tag)
                self.steps.append(step)
                check(self, held)
                self.steps.pop()
        unknown = getattr(value, UNKNOWN_TAGS)
        if unknown is None:
            return
        self.steps.append(f".{UNKNOWN_TAGS}")
        if not isinstance(unknown, list):
            raise self.mistyped(unknown, "list")
        for i, entry in enumerate(unknown):
            self.steps[-1] = f".{UNKNOWN_TAGS}[{i}]"
            self.unknown_tag(entry, met)
        self.steps.pop()

    def unknown_tag(self, entry: Any, met: set[int]) -> None:
        if not (isinstance(entry, tuple) and [type(each) for each in entry] == [int, bytes]):
            raise self.fault(InvalidValue, "is not a pair of tag and bytes")
        tag: int = entry[0]
        if not self.lenient and not 0 <= tag <= MAX_LENGTH:
            raise self.fault(OutOfRange, f"{tag} is not a valid tag")
        if not self.lenient and tag in met:
            raise self.fault(InvalidValue, f"tag {tag} is there twice")
        met.add(tag)


Check = Callable[[Values, Any], None]


class FieldCheck(NamedTuple):
    """A field in its struct: its step of the path, and what checks its value."""

    step: str
    attribute: str
    check: Check


class Layout(NamedTuple):
    """The fields of a struct in one version, in the order in which they are written.

    attributes: of all versions. fields: all but the tagged ones that the version has; those that it
    does not have included. tagged: tag, default and place of the tagged ones, in order of the tags.
    """

    name: str
    attributes: tuple[str, ...]
    fields: tuple[FieldCheck, ...]
    is_flexible: bool
    tagged: tuple[tuple[int, Any, FieldCheck], ...]

    def fits(self, value: Any, module: str) -> bool:
        """Whether a value is that struct, with all of its attributes."""
        kind = type(value)
        return (kind.__name__, kind.__module__) == (self.name, module) and all(
            hasattr(value, each) for each in self.attributes
        )


def is_set(value: Any, default: Any, module: str) -> bool:
    """Whether a value differs from the default of its field."""
    if value is None or default is None:
        return value is not default
    if isinstance(default, bool):
        return value is not default
    names = getattr(default, "__match_args__", None)
    if names is not None:
        if is_odd(value, default, module):
            return True
        return any(
            is_set(getattr(value, each, ...), getattr(default, each), module) for each in names
        )
    if default != default:  # NaN, which does not equal itself
        return bool(value == value)
    return bool(value != default)


def is_odd(value: Any, default: Any, module: str) -> bool:
    """Whether a value is not a list or struct, where the default of its field is one."""
    if isinstance(default, list):
        return not isinstance(value, list)
    kind = type(value)
    is_same = (kind.__name__, kind.__module__) == (type(default).__name__, module)
    return hasattr(default, "__match_args__") and not is_same


# checks of fields


def check_absent(values: Values, value: Any, name: str, default: Any) -> None:
    """Check a field that the version does not have; name: `Struct.attribute`."""
    odd = is_odd(value, default, values.module)
    if not (odd or name == values.unfit) or not is_set(value, default, values.module):
        return
    error = values.fault(FieldNotInVersion, "is set, and the version has no such field")
    if name == values.unfit:
        raise error
    values.suspect = values.suspect or error


def check_no_tags(values: Values, value: Any) -> None:
    """Check the unknown tagged fields of a struct in a version without any."""
    if value is not None:
        raise values.fault(FieldNotInVersion, "is set, and the version has no tagged fields")


def check_struct(values: Values, value: Any, layout: Layout, nullable: bool) -> None:
    """Check a struct."""
    if value is not None or not nullable:
        values.struct(value, layout)


def check_nullable(values: Values, value: Any, nullable: bool, check: Check) -> None:
    """Check a value with a length, which may be null in some versions."""
    if value is not None:
        check(values, value)
    elif not nullable:
        raise values.fault(NullNotAllowed, "is None, and not nullable in that version")


def check_array(values: Values, value: Any, check: Check) -> None:
    """Check a list, then its elements."""
    if not isinstance(value, list):
        raise values.mistyped(value, "list")
    check_length(values, len(value))
    values.steps.append("")
    for i, each in enumerate(value):
        values.steps[-1] = f"[{i}]"
        check(values, each)
    values.steps.pop()


# checks of primitive types


def check_length(values: Values, length: int) -> None:
    """Check the length of bytes, or the count of an array."""
    if length > MAX_LENGTH:
        raise values.fault(OutOfRange, f"a length of {length}; {MAX_LENGTH} is the most")


def check_integer(values: Values, value: Any, name: str, low: int, high: int) -> None:
    """Check an integer; name: of its wire type."""
    if not isinstance(value, int):
        raise values.mistyped(value, name)
    if not low <= value <= high:
        bits = value.bit_length()
        shown = str(value) if bits <= MAX_SHOWN_BITS else f"an integer of {bits} bits"
        raise values.fault(OutOfRange, f"{shown} is not in {low} to {high}")


def check_float(values: Values, value: Any) -> None:
    """Check a float64."""
    if not isinstance(value, float | int):
        raise values.mistyped(value, "float64")
    try:
        float(value)
    except OverflowError:
        bits = int(value).bit_length()
        reason = f"an integer of {bits} bits is too large for a float64"
        raise values.fault(OutOfRange, reason) from None


def check_bool(values: Values, value: Any) -> None:
    """Check a bool."""
    if not isinstance(value, bool):
        raise values.mistyped(value, "bool")


def check_uuid(values: Values, value: Any) -> None:
    """Check a uuid."""
    if not isinstance(value, bytes):
        raise values.mistyped(value, f"{UUID_BYTES} bytes")
    if len(value) != UUID_BYTES:
        reason = f"has {len(value)} bytes, not {UUID_BYTES} bytes"
        raise values.fault(InvalidValue, reason)


def check_bytes(values: Values, value: Any) -> None:
    """Check bytes or records."""
    if not isinstance(value, bytes):
        raise values.mistyped(value, "bytes")
    check_length(values, len(value))


def check_text(values: Values, value: Any) -> None:
    """Check a string."""
    if not isinstance(value, str):
        raise values.mistyped(value, "str")
    try:
        size = len(value.encode("utf-8", "surrogateescape" if values.lenient else "strict"))
    except UnicodeEncodeError as error:
        reason = f"character {error.start} cannot be written as UTF-8"
        raise values.fault(InvalidValue, reason) from None
    if size > MAX_STRING:
        raise values.fault(OutOfRange, f"a string of {size} bytes; {MAX_STRING} is the most")
