"""Truth beside the captures: what other implementations saw in the same bytes."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkawire.primitives import Structure
from tests.recordings import unchanged

SIDES = {"request": "req", "response": "resp"}


def captures() -> list[Path]:
    """List the truth of every recording of our own, as it was made."""
    return unchanged("*.truth.jsonl.gz")


def lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines, through gzip where the name says so."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as text:
        return [json.loads(line) for line in text]


def capture_of(truth: Path) -> Path:
    """Find the capture that a truth file speaks of."""
    return truth.with_name(truth.name.split(".truth")[0] + ".pcap")


def kmsg_of(truth: Path) -> Path:
    """Find franz-go's reading of the same capture."""
    return truth.with_name(truth.name.split(".truth")[0] + ".kmsg.jsonl.gz")


# -- bodies under two namings: compared by what they hold, in whatever order

UNTOLD = (None, "", 0, -1, False, 2147483647, -2147483648, 9223372036854775807)
"""Values that fields absent from a version read as, on one side or the other."""


def our_values(message: Structure, version: int) -> Counter[str]:
    """Count the values a message holds, uuids and bytes as hex."""
    return Counter(text for value in _ours(message, version) for text in _told(value))


def their_values(body: dict[str, Any]) -> Counter[str]:
    """Count the values in franz-go's form of a body: base64 for bytes, 16 numbers for a uuid."""
    return Counter(text for value in _theirs(body) for text in _told(value))


def _told(value: object) -> list[str]:
    if isinstance(value, bytes):
        return [value.hex()] if value.strip(b"\0") else []
    if value in UNTOLD and not (isinstance(value, bytes)):
        return []
    return [repr(value)]


def _ours(message: Structure, version: int) -> Iterator[object]:
    for row in message.__fields__:
        if row.first <= version <= row.last:
            value = getattr(message, row.attribute)
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, Structure):
                    yield from _ours(one, version)
                else:
                    yield one


BYTES = {
    "Records", "RecordBatches", "Protocols.Metadata", "ProtocolMetadata", "UserData",
    "MemberAssignment", "MemberMetadata", "SASLAuthBytes", "Metrics", "Salt", "SaltedPassword",
}  # fmt: skip


def _theirs(value: Any, key: str = "") -> Iterator[object]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != "UnknownTags" and (name != "Version" or key):
                yield from _theirs(inner, f"{key}.{name}")
    elif isinstance(value, list):
        if len(value) == 16 and all(isinstance(x, int) and 0 <= x < 256 for x in value):
            yield bytes(value)
        else:
            for one in value:
                yield from _theirs(one, key)
    elif isinstance(value, str) and key.endswith(tuple(BYTES)):
        yield base64.b64decode(value)
    else:
        yield value


def records_of(truth: Path) -> Path:
    """Find the records that kafka-python's code reads in the same capture."""
    return truth.with_name(truth.name.split(".truth")[0] + ".records.jsonl.gz")
