"""Describes the wire layout of bodies, to write them as JSON without creating messages.

Law: a body has a program only if its JSON form follows the wire format: fields in order, no
optional structs, no redacted fields. `writer.c` itself skips records of the metadata topic, which
are redacted.

    class, version --once--> Program: one step per field, in wire order
"""

from __future__ import annotations

import sys
from typing import Any, Final

from ...primitives.structure import Structure
from ...protocol.secrets import CONFIG_STRUCTS, SECRET_FIELDS, SNAPSHOT_MODULE
from .records import plan
from .writer import Program

# as `writer.c` numbers them
INT8: Final = 1
INT16: Final = 2
UINT16: Final = 3
INT32: Final = 4
UINT32: Final = 5
INT64: Final = 6
BOOL: Final = 7
STRING: Final = 8
BYTES: Final = 9
UUID: Final = 10
FLOAT64: Final = 11
RECORDS: Final = 12
STRUCT: Final = 13

KINDS: Final = {
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "uint32": UINT32,
    "int64": INT64,
    "bool": BOOL,
    "string": STRING,
    "bytes": BYTES,
    "uuid": UUID,
    "float64": FLOAT64,
    "records": RECORDS,
}

_programs: Final[dict[tuple[type[Structure], int, bool], Program | None]] = {}


def program_of(cls: type[Structure], version: int, flexible: bool, secrets: bool) -> Program | None:
    """Return the program of a struct's class at a version; None if messages have to be created.

    flexible: whether lengths are varints and tags follow. secrets: whether secrets are shown.
    """
    key = (cls, version, secrets)
    if key not in _programs:
        _programs[key] = _compile(cls, version, flexible, secrets)
    return _programs[key]


def _compile(cls: type[Structure], version: int, flexible: bool, secrets: bool) -> Program | None:
    roles = {step.attribute: step.role for step in plan(cls, version)}
    owner: Any = cls
    if not secrets and (
        owner.__name__ in CONFIG_STRUCTS or owner.__module__.endswith(SNAPSHOT_MODULE)
    ):
        return None
    module = sys.modules[owner.__module__]
    steps: list[tuple[bytes, bytes, int, bool, int, Program | None]] = []
    for row in cls.__fields__:
        if row.tag >= 0 or not row.first <= version <= row.last:
            continue
        element = row.type.removeprefix("[]")
        is_array = element != row.type
        inner: Program | None = None
        if element[0].isupper():
            inner = program_of(getattr(module, element), version, flexible, secrets)
            if inner is None or not is_array:  # an optional struct may have a marker byte before it
                return None
        elif element not in KINDS or (row.json_name in SECRET_FIELDS and not secrets):
            return None
        lead = f'{"," if steps else "{"}"{row.json_name}":'.encode()
        name, kind = row.attribute.encode(), KINDS.get(element, STRUCT)
        steps.append((lead, name, kind, is_array, roles.get(row.attribute, -1), inner))
    return Program(flexible, tuple(steps))
