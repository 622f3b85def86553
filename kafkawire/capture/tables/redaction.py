"""Redacts keys, values and bodies in tables.

A redacted value shows nothing of the content but its size and hash, so that equal values stay
equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from functools import partial
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa

from ...protocol.packages import package_named
from ..jsonl.records_fields import JSON_NAMES, json_names
from ..redaction import redacted as without


def digest(value: bytes | None) -> bytes | None:
    """Replace bytes by their hash and size."""
    if value is None:
        return None
    return b"sha256:%s, %d bytes" % (sha256(value).hexdigest().encode(), len(value))


def _headers(headers: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    if headers is None:
        return None
    return [one | {"value": digest(one["value"])} for one in headers]


def _body(text: str | None, hidden: Container[str] = JSON_NAMES) -> str | None:
    if text is None:
        return None
    return json.dumps(without(json.loads(text), hidden), separators=(",", ":"))


REDACTED: Final[dict[str, dict[str, Callable[[Any], Any]]]] = {
    "messages": {"body": _body, "raw": digest},
    "records": {"key": digest, "value": digest, "headers": _headers},
}
"""Table -> column with content -> what redacts a value."""


def redacted(table: str, batch: pa.RecordBatch, package: str | None = None) -> pa.RecordBatch:
    """Redact the content columns of a batch.

    package: the import name of the messages' package; None for Kafka's.
    """
    hidden = JSON_NAMES if package is None else json_names(package_named(package))
    for name, redact in REDACTED.get(table, {}).items():
        if redact is _body:
            redact = partial(_body, hidden=hidden)
        index = batch.schema.get_field_index(name)
        field = batch.schema.field(index)
        values = [redact(value) for value in batch.column(index).to_pylist()]
        batch = batch.set_column(index, field, pa.array(values, field.type))
    return batch
