"""Reads one message body. Native under mypyc; the same source runs interpreted.

Truncated data never yields a value. `read_iN_be` and indexing raise IndexError; a slice does
not, so every slice follows a comparison with `end`; positions never go below zero; a count is
compared with the bytes left, and with the budget, before memory is allocated.
"""

# over 300 lines: one native class that generated code calls, hot

from typing import Final, final

from librt.strings import read_f64_be, read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i16, i32, i64, mypyc_attr

from ..errors import (
    InvalidLength,
    InvalidTag,
    InvalidVarint,
    LimitExceeded,
    TrailingBytes,
    Truncated,
    UnexpectedNull,
    counted,
)
from .limits import FREE_OBJECTS, NO_LIMITS, UNLIMITED, Limits
from .shared import NO_INTS, shared_int32_items, shared_text
from .structure import Deviations
from .writer import Tags

MAX_STRING: Final = 0x7FFF
"""The longest string: compact lengths beyond an int16 are errors, as in Kafka."""

MAX_TAG: Final = 0x7FFF_FFFE
"""The highest tag that an encoder writes; 2147483647 is reserved (KIP-482)."""

_NO_INTS: Final = NO_INTS
"""The same, where compiled code finds it without a lookup by name."""


# free_list_len: each decode makes one reader and reuses the last one's memory
@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Reader:
    """Reads `data` from `pos` on.

    lenient: accept text that is not UTF-8, known tags at versions without them, bytes after the
    end. `finish` returns the deviations. elements: the array elements still allowed; objects: the
    arrays, structs in arrays and unknown tagged fields still allowed before `more_objects` is
    called.
    """

    def __init__(
        self, data: bytes, pos: i64 = 0, *, lenient: bool = False, limits: Limits = NO_LIMITS
    ) -> None:
        if not isinstance(data, bytes):  # compiled code checks this itself
            raise TypeError(f"bytes object expected; got {type(data).__name__}")
        self.data: bytes = data
        self.pos: i64 = pos
        self.end: i64 = len(data)
        self.lenient: bool = lenient
        self.limits: Limits = limits
        self.elements: i64 = limits.max_elements
        self.objects: i64 = FREE_OBJECTS
        self.has_more_objects: bool = True
        self.is_odd: bool = False
        self.invalid_text: i64 = 0
        self.misplaced_tags: i64 = 0
        self.wrong_sizes: i64 = 0
        self.unordered_tags: i64 = 0
        self.default_tags: i64 = 0
        self.invalid_tags: i64 = 0
        self.long_varints: i64 = 0
        self.odd_values: i64 = 0

    # -- fixed width

    def read_bool(self) -> bool:
        p = self.pos
        self.pos = p + 1
        byte: i64 = self.data[p]
        if byte > 1:
            self.odd_value()
        return byte != 0

    def read_int8(self) -> i64:
        p = self.pos
        self.pos = p + 1
        value: i64 = self.data[p]
        return value - 256 if value > 127 else value

    def read_int16(self) -> i16:
        p = self.pos
        self.pos = p + 2
        return read_i16_be(self.data, p)

    def read_uint16(self) -> i64:
        p = self.pos
        self.pos = p + 2
        return i64(read_i16_be(self.data, p)) & 0xFFFF

    def read_int32(self) -> i32:
        p = self.pos
        self.pos = p + 4
        return read_i32_be(self.data, p)

    def read_uint32(self) -> i64:
        p = self.pos
        self.pos = p + 4
        return i64(read_i32_be(self.data, p)) & 0xFFFFFFFF

    def read_int64(self) -> i64:
        p = self.pos
        self.pos = p + 8
        return read_i64_be(self.data, p)

    def read_float64(self) -> float:
        p = self.pos
        self.pos = p + 8
        return read_f64_be(self.data, p)

    def read_uuid(self) -> bytes:
        return self.take(16)

    # -- lengths

    def read_uvarint(self) -> i64:
        """Read an unsigned varint of at most 5 bytes; a non-minimal one is accepted."""
        p = self.pos
        byte: i64 = self.data[p]
        if byte > 127:
            return self.read_long_uvarint()
        self.pos = p + 1
        return byte

    def read_long_uvarint(self) -> i64:
        """Read an unsigned varint of any length: few are longer than one byte.

        As in Kafka, the result is the low 32 bits as an int32, and may be negative
        (`ByteUtils.readUnsignedVarint`).
        """
        data = self.data
        p = self.pos
        value: i64 = 0
        shift: i64 = 0
        while True:
            byte: i64 = data[p]
            p += 1
            value |= (byte & 0x7F) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 28:
                raise InvalidVarint("a varint goes on after its fifth byte")
        self.pos = p
        if byte == 0 or value > 0x7FFF_FFFF:
            self.is_odd = True
            self.long_varints += 1
        return int32(value)

    def read_compact_length(self) -> i64:
        """Read a length or count written as a varint of one more; -1 is null."""
        p = self.pos
        byte: i64 = self.data[p]
        if byte > 127:
            return int32(self.read_long_uvarint() - 1)
        self.pos = p + 1
        return byte - 1

    def checked_length(self, n: i64) -> i64:
        """Count a null that is written as a length below -1."""
        if n < -1:
            self.odd_value()
        return n

    def odd_value(self) -> None:
        """Count a value that an encoder writes with other bytes."""
        self.is_odd = True
        self.odd_values += 1

    def take(self, n: i64) -> bytes:
        """Take the next `n` bytes; n is not negative."""
        p = self.pos
        e = p + n
        if e > self.end:
            raise self.truncated(n)
        self.pos = e
        return self.data[p:e]

    def truncated(self, n: i64) -> Truncated:
        """Make the error for `n` bytes that are not there."""
        return Truncated(f"{counted(n, 'byte')} wanted, {self.end - self.pos} left")

    def read_string_length(self, flexible: bool) -> i64:
        if not flexible:
            return self.checked_length(i64(self.read_int16()))
        n = self.read_compact_length()
        if n > MAX_STRING:
            raise InvalidLength(f"a string of {n} bytes; {MAX_STRING} is the most")
        return n

    def read_bytes_length(self, flexible: bool) -> i64:
        if flexible:
            return self.read_compact_length()
        return self.checked_length(i64(self.read_int32()))

    def read_nullable_array_length(self, flexible: bool) -> i64:
        """Read a count; below zero stands for null. An element takes at least one byte."""
        n = self.read_bytes_length(flexible)
        if n >= 0:
            self.objects -= 1
            if self.objects < 0:
                self.more_objects()
            if n > self.end - self.pos:
                left = counted(self.end - self.pos, "byte")
                raise InvalidLength(f"an array of {counted(n, 'element')}, {left} left")
            self.elements -= n
            if self.elements < 0:
                raise LimitExceeded("more array elements than max_elements allows")
        return n

    def read_array_length(self, flexible: bool) -> i64:
        n = self.read_nullable_array_length(flexible)
        if n < 0:
            raise UnexpectedNull("null in an array that is not nullable")
        return n

    def read_marker(self) -> bool:
        """Read the byte before a nullable struct: negative is null."""
        sign = self.read_int8()
        if sign != 1 and sign != -1:  # avoids a tuple in compiled code
            self.odd_value()
        return sign >= 0

    def read_tagged_marker(self) -> bool:
        """Read the varint before a nullable struct in a tagged field: 0, or negative, is null."""
        n = self.read_uvarint()
        if n > 1:
            self.odd_value()
        return n > 0

    def more_objects(self) -> None:
        """Add the objects that the size of the message allows to those of any message."""
        if self.has_more_objects:
            self.has_more_objects = False
            each: i64 = self.limits.bytes_per_object
            self.objects += self.end // each if each > 0 else UNLIMITED
        if self.objects < 0:
            raise LimitExceeded("more objects than bytes_per_object allows")

    # -- variable width

    def text(self, n: i64) -> str:
        if n == 0:
            return ""
        p = self.pos
        if n > self.end - p:
            raise self.truncated(n)
        self.pos = p + n
        try:
            return shared_text(self.data, p, n)
        except UnicodeDecodeError:
            if not self.lenient:
                raise
        self.is_odd = True
        self.invalid_text += 1
        return self.data[p : p + n].decode("utf-8", "surrogateescape")

    def read_string(self, flexible: bool) -> str:
        n = self.read_string_length(flexible)
        if n < 0:
            raise UnexpectedNull("null in a string that is not nullable")
        return self.text(n)

    def read_nullable_string(self, flexible: bool) -> str | None:
        n = self.read_string_length(flexible)
        return None if n < 0 else self.text(n)

    def read_bytes(self, flexible: bool) -> bytes:
        n = self.read_bytes_length(flexible)
        if n < 0:
            raise UnexpectedNull("null in bytes that are not nullable")
        return self.take(n)

    def read_nullable_bytes(self, flexible: bool) -> bytes | None:
        n = self.read_bytes_length(flexible)
        return None if n < 0 else self.take(n)

    # -- elements of arrays

    def slots(self, n: i64) -> bytes:
        """Return any `n` bytes, for an array of `n` structs; `n` is checked.

        Compiled code allocates a list at its final size in a comprehension over bytes, but not over
        a range.
        """
        self.objects -= n
        if self.objects < 0:
            self.more_objects()
        p = self.pos
        return self.data[p : p + n]

    def read_bool_items(self, n: i64) -> list[bool]:
        return [self.read_bool() for _ in range(n)]

    def read_int8_items(self, n: i64) -> list[int]:
        return [int(self.read_int8()) for _ in range(n)]

    def read_int16_items(self, n: i64) -> list[int]:
        return [int(self.read_int16()) for _ in range(n)]

    def read_uint16_items(self, n: i64) -> list[int]:
        return [int(self.read_uint16()) for _ in range(n)]

    def read_int32_items(self, n: i64) -> list[int]:
        """Read int32: replicas, partitions. Short lists often repeat and are shared."""
        if n == 0:
            return _NO_INTS
        p = self.pos
        size = n * 4
        if size > self.end - p:
            raise self.truncated(size)
        self.pos = p + size
        return shared_int32_items(self.data, p, size)

    def read_uint32_items(self, n: i64) -> list[int]:
        return [int(self.read_uint32()) for _ in range(n)]

    def read_int64_items(self, n: i64) -> list[int]:
        return [int(self.read_int64()) for _ in range(n)]

    def read_float64_items(self, n: i64) -> list[float]:
        return [self.read_float64() for _ in range(n)]

    def read_uuid_items(self, n: i64) -> list[bytes]:
        return [self.take(16) for _ in range(n)]

    def read_string_items(self, n: i64, flexible: bool) -> list[str]:
        return [self.read_string(flexible) for _ in range(n)]

    def read_bytes_items(self, n: i64, flexible: bool) -> list[bytes]:
        return [self.read_bytes(flexible) for _ in range(n)]

    # -- tagged fields (KIP-482)

    def read_tags(self) -> Tags:
        """Read the tagged-field block of a struct without known tags."""
        n = self.read_uvarint()
        if n == 0:
            return None
        if n < 0:
            self.negative_tag_count(n)
        kept: Tags = None
        tag: i64 = -1
        for _ in range(n):
            tag = self.read_tag(tag)
            kept = self.keep_tag(kept, tag, self.read_uvarint())
        return kept

    def read_tag_count(self) -> i64:
        """Read how many tagged fields follow; a negative number, if accepted, stands for 0."""
        n = self.read_uvarint()
        if n < 0:
            self.negative_tag_count(n)
        return n

    def negative_tag_count(self, n: i64) -> None:
        """Raise for a negative number of tagged fields, as Kafka since 4.4, unless lenient."""
        if not self.lenient:
            raise InvalidLength(f"a negative number of tagged fields ({n})")

    def read_tag(self, previous: i64) -> i64:
        """Read the tag of a tagged field after the one with the tag `previous`; -1 for none."""
        tag = self.read_uvarint()
        if tag <= previous:
            self.is_odd = True
            self.unordered_tags += 1
        return tag

    def keep_tag(self, kept: Tags, tag: i64, size: i64) -> list[tuple[int, bytes]]:
        """Keep an unknown tagged field as raw bytes."""
        self.elements -= 1
        if self.elements < 0:
            raise LimitExceeded("more tagged fields than max_elements allows")
        self.objects -= 1
        if self.objects < 0:
            self.more_objects()
        if size < 0:
            raise InvalidLength(f"a tagged field of {size} bytes")
        if tag < 0 or tag > MAX_TAG:
            self.is_odd = True
            self.invalid_tags += 1
        if kept is None:
            kept = []
        kept.append((tag, self.take(size)))
        return kept

    def keep_misplaced_tag(self, kept: Tags, tag: i64, size: i64) -> list[tuple[int, bytes]]:
        """Keep a tag of other versions: an error in Kafka and for a strict reader."""
        if not self.lenient:
            raise InvalidTag(f"tag {tag} does not exist in this version")
        self.is_odd = True
        self.misplaced_tags += 1
        return self.keep_tag(kept, tag, size)

    def end_tag(self, start: i64, size: i64) -> None:
        """Check the declared size of a known tagged field."""
        if self.pos - start != size:
            if not self.lenient:
                raise InvalidTag(
                    f"a tagged field of {counted(size, 'byte')} takes {self.pos - start}"
                )
            self.is_odd = True
            self.wrong_sizes += 1

    def note_default_tag(self) -> None:
        """Count a tagged field with its default value, which an encoder omits."""
        self.is_odd = True
        self.default_tags += 1

    # -- the end

    def finish(self) -> Deviations | None:
        """End the message: bytes after it are an error, or kept by a lenient reader."""
        if self.pos == self.end and not (self.lenient and self.is_odd):
            return None
        if not self.lenient:
            raise TrailingBytes(f"{counted(self.end - self.pos, 'byte')} after the last field")
        return Deviations(
            self.data[self.pos : self.end],
            self.invalid_text,
            self.misplaced_tags,
            self.wrong_sizes,
            self.unordered_tags,
            self.default_tags,
            self.invalid_tags,
            self.long_varints,
            self.odd_values,
        )


def int32(value: i64) -> i64:
    """Return the low 32 bits of a value as a signed number, as Java's casts do."""
    value &= 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value > 0x7FFF_FFFF else value
