"""Checks that Avro values stay within limits, before they are decoded.

The work is linear in the bytes of a value. fastavro, which decodes it, has no limits: an array
of nulls takes no bytes, and the depth of a recursive record ends the process.

    schema --growth_of--> Growth: which values need a check      value --check--> InvalidRecordValue
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..errors import InvalidRecordValue
from .bounds import Bounds

Named = Mapping[str, Any]
"""Definitions of records, enums and fixed types, by full name."""

FIXED_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
NUMBERS: Final = frozenset({"int", "long"})
TEXTS: Final = frozenset({"bytes", "string"})
MAX_VARINT: Final = 10
MAX_DECIMAL: Final = 4096
"""Bytes of a decimal; converting it takes the square of its length."""
MAX_FREE: Final = 16
"""Fields without bytes that a schema may have for its values not to need a check."""


class Growth(NamedTuple):
    """How large the values of a schema may be.

    always: whether every value needs a check, as the schema is recursive, deep, or has items
    without bytes. decimals: whether it has decimals of any length.
    """

    always: bool
    decimals: bool

    def needs_check(self, size: int) -> bool:
        return self.always or (self.decimals and size > MAX_DECIMAL)


class _Unlimited(Exception):
    """Values may be of any depth, or of more items than bytes."""


def growth_of(schema: Any, named: Named, bounds: Bounds) -> Growth:
    """Find out how large the values of a parsed schema may be."""
    scan = _Scan(named, bounds)
    try:
        scan.size(schema, 0)
    except _Unlimited:
        return Growth(True, True)
    return Growth(scan.free > MAX_FREE, scan.decimals)


class _Scan:
    """Measures the smallest values of the types in a schema. free: fields without bytes."""

    def __init__(self, named: Named, bounds: Bounds) -> None:
        self.decimals = False
        self.free = 0
        self._named = named
        self._bounds = bounds
        self._sizes: dict[str, tuple[int, int]] = {}  # of named types: bytes, depth below

    def size(self, schema: Any, depth: int) -> tuple[int, int]:
        """Return the least bytes of a value, and its levels."""
        if depth > self._bounds.depth:
            raise _Unlimited  # also the end of a recursion
        if isinstance(schema, list):
            sizes = [self.size(branch, depth + 1) for branch in schema]
            return 1, 1 + max((levels for _, levels in sizes), default=0)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.size(kind, depth + 1)
        if kind == "record" or kind == "error":
            return self._record(schema, depth)
        if kind in ("array", "map"):
            least, levels = self.size(schema["items" if kind == "array" else "values"], depth + 1)
            if not least and kind == "array":
                raise _Unlimited
            return 1, levels + 1
        if kind == "fixed":
            self.decimals |= schema["size"] > MAX_DECIMAL
            return int(schema["size"]), 0
        if kind in self._named and not isinstance(schema, dict):
            return self._reference(kind, depth)
        if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
            self.decimals = True
        return FIXED_SIZES.get(kind, 1), 0

    def _reference(self, name: str, depth: int) -> tuple[int, int]:
        size = self._sizes.get(name)
        if size is None:
            return self.size(self._named[name], depth)
        if depth + size[1] > self._bounds.depth:
            raise _Unlimited
        return size

    def _record(self, schema: Any, depth: int) -> tuple[int, int]:
        least = levels = 0
        for field in schema["fields"]:
            size, below = self.size(field["type"], depth + 1)
            least += size
            levels = max(levels, below)
            if not size:
                self.free += 1 + (0 if field["type"] == "null" else MAX_FREE)
        self._sizes[schema["name"]] = least, levels + 1
        return least, levels + 1


def check(schema: Any, named: Named, data: bytes, at: int, bounds: Bounds) -> None:
    """Walk over a value without decoding it.

    Raises InvalidRecordValue for one that is beyond the limits, or not of its schema.
    """
    walk = _Walk(named, data, at, bounds)
    walk.value(schema, 0)


class _Walk:
    """A walk over one value."""

    def __init__(self, named: Named, data: bytes, at: int, bounds: Bounds) -> None:
        self._named = named
        self._data = data
        self._at = at
        self._bounds = bounds
        self._nodes_left = bounds.nodes(len(data))

    def value(self, schema: Any, depth: int) -> None:
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise InvalidRecordValue("more fields and items than its size allows")
        if depth > self._bounds.depth:
            raise InvalidRecordValue(f"nested more than {self._bounds.depth} levels deep")
        if isinstance(schema, list):
            branch = self._number()
            if not 0 <= branch < len(schema):
                raise InvalidRecordValue(f"branch {branch} of a union of {len(schema)}")
            self.value(schema[branch], depth + 1)
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            self.value(kind, depth + 1)
        elif kind in ("record", "error"):
            for field in schema["fields"]:
                self.value(field["type"], depth + 1)
        elif kind in ("array", "map"):
            self._blocks(schema, kind, depth)
        elif kind == "fixed":
            self._skip(schema["size"], schema)
        else:
            self._scalar(schema, kind, depth)

    def _scalar(self, schema: Any, kind: str, depth: int) -> None:
        if kind in FIXED_SIZES:
            self._skip(FIXED_SIZES[kind], schema)
        elif kind == "enum":
            symbol = self._number()
            if not 0 <= symbol < len(schema["symbols"]):
                raise InvalidRecordValue(f"symbol {symbol} of an enum of {len(schema['symbols'])}")
        elif kind in NUMBERS:
            self._number()
        elif kind in TEXTS:
            self._skip(self._number(), schema)
        else:
            self.value(self._named[kind], depth + 1)

    def _blocks(self, schema: Any, kind: str, depth: int) -> None:
        inner = schema["items" if kind == "array" else "values"]
        while count := self._number():
            if count < 0:  # its size in bytes follows
                count = -count
                self._number()
            if count > self._nodes_left:
                raise InvalidRecordValue("more items than its size allows")
            for _ in range(count):
                if kind == "map":
                    self._skip(self._number(), None)
                self.value(inner, depth + 1)

    def _skip(self, size: int, schema: Any) -> None:
        if not 0 <= size <= len(self._data) - self._at:
            raise InvalidRecordValue("a length beyond the end of the value")
        is_decimal = isinstance(schema, dict) and schema.get("logicalType") == "decimal"
        if is_decimal and size > MAX_DECIMAL:
            raise InvalidRecordValue(f"a decimal of {size} bytes")
        self._at += size

    def _number(self) -> int:
        number = 0
        for n in range(MAX_VARINT):
            if self._at >= len(self._data):
                raise InvalidRecordValue("the value ends early")
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << 7 * n
            if byte < 0x80:
                return number >> 1 ^ -(number & 1)
        raise InvalidRecordValue("a number of more than 10 bytes")
