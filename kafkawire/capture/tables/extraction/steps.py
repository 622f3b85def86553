"""Numbers of what a program consists of: how fields are read, what they identify, columns.

They are those of `blocks.c`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .blocks import COLUMNS, MAX_NUMBERS
from .entities import NUMBER_FIELDS, Entities

SKIP: Final = 0
STRING: Final = 1
BYTES: Final = 2
ITEMS: Final = 3
STRINGS: Final = 4
BLOBS: Final = 5
STRUCTS: Final = 6
GROUP: Final = 7
NAME: Final = 8
ID: Final = 9
PARTITIONS: Final = 10
NUMBERS: Final = 11
NUMBER: Final = 12
INTEGER: Final = 13
TEXT: Final = 14
RECORDS: Final = 15
HEADER: Final = 16
NO_STRUCTS: Final = 17
SCALAR: Final = 18
"""How a field is read."""

NO_ROLE: Final = 0
ROLES: Final[dict[Callable[[Entities, Any], None], tuple[int, str]]] = {
    Entities.topic: (1, "string"),
    Entities.group: (2, "string"),
    Entities.transactional_id: (3, "string"),
    Entities._topic_id: (4, "uuid"),
    Entities._error: (5, "int16"),
    **{add: (6 + index, "int32") for index, add in enumerate(NUMBER_FIELDS.values())},
}
"""What adds the entity of a decoded field -> its role, as `blocks.c` numbers it, and its type."""

SESSION: Final = {
    ("FetchRequest", "session_id"): 0,
    ("FetchRequest", "session_epoch"): 1,
    ("FetchResponse", "session_id"): 0,
    ("FetchResponse", "error_code"): 2,
}
"""Fields of fetch sessions (KIP-227) -> their place in the header of a block."""

FORGOTTEN: Final = "FetchRequest", "forgotten_topics_data"
"""A Fetch that removes partitions from its session is decoded."""

INTEGERS: Final = frozenset({"int8", "int16", "int32", "int64"})
ITEM_KINDS: Final = {"string": STRINGS, "bytes": BLOBS, "records": BLOBS}
VALUE_KINDS: Final = {"string": STRING, "bytes": BYTES, "records": BYTES}

NAMES: Final = (
    "request_offset",
    "request_timestamp_ms",
    "current_leader_epoch",
    "max_bytes",
    "error_code",
    "error",
    "error_message",
    "offset",
    "timestamp_ms",
    "high_watermark",
    "last_stable_offset",
    "log_start_offset",
    "preferred_read_replica",
    "leader_id",
    "leader_epoch",
    "metadata",
    "records_bytes",
    "batches",
    "records",
)
"""The columns of a block."""

AT: Final = {name: at for at, name in enumerate(NAMES)}
RECORDS_AT: Final = AT["records_bytes"], AT["batches"], AT["records"]

assert len(NAMES) == COLUMNS
assert len(NUMBER_FIELDS) <= MAX_NUMBERS
