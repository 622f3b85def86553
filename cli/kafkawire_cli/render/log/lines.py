"""Formats rows of log files as lines of text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ..contents import form, header_name
from ..messages import shortened

if TYPE_CHECKING:
    from kafkawire.log import BatchRow, LogPart, RecordRow, Row

NOTHING_DECODED: Final[Mapping[str, Any]] = {}

LATEST_MAGIC: Final = 2


def heading(row: Row) -> str:
    """Return the heading of a table."""
    from kafkawire.log import BatchRow, RecordRow

    if isinstance(row, BatchRow):
        return (
            f"{'position':>10} {'offsets':>17} {'records':>7} {'size':>7} {'codec':6} "
            f"{'max time':23} producer and flags"
        )
    if isinstance(row, RecordRow):
        return (
            f"{'position':>10} {'offset':>10} {'time':23} {'codec':6} {'producer':>14} "
            "key and value"
        )
    return "  ".join(f"{name.replace('_', ' '):>{width(name)}}" for name in row._fields)


def width(name: str) -> int:
    """Return the width of a column: an offset may have 19 digits."""
    return max(12, len(name)) if name not in ("entry", "line") else 8


def line(row: Row, secrets: bool = False, decoded: Mapping[str, Any] = NOTHING_DECODED) -> str:
    """Format a row as one line of the table; decoded: the members that JSON has."""
    from kafkawire.log import BatchRow, RecordRow

    if isinstance(row, BatchRow):
        return batch_line(row)
    if isinstance(row, RecordRow):
        return record_line(row, secrets, decoded)
    return "  ".join(f"{value!s:>{width(name)}}" for name, value in row._asdict().items())


def batch_line(row: BatchRow) -> str:
    """Format the header of a batch as one line; `!` marks an invalid checksum."""
    offsets = f"{row.base_offset}-{row.last_offset}"
    records = "?" if row.records < 0 else str(row.records)
    producer = ""
    if row.producer_id >= 0:
        sequences = f"{row.base_sequence}-{row.last_sequence}" if row.base_sequence >= 0 else ""
        producer = "/".join(
            filter(None, (str(row.producer_id), str(row.producer_epoch), sequences))
        )
    flags = {
        producer: bool(producer),
        "txn": row.transactional,
        "control": row.control,
        f"epoch {row.partition_leader_epoch}": row.partition_leader_epoch > 0,
        f"magic {row.magic}": row.magic < LATEST_MAGIC,
        "log append": row.timestamp_type == "LOG_APPEND_TIME",
        f"delete horizon {time_text(row.delete_horizon_ms or -1)}": (
            row.delete_horizon_ms is not None
        ),
    }
    return (
        f"{row.position:>10}{'!' if row.crc_valid is False else ' '}{offsets:>17} {records:>7} "
        f"{row.size:>7} {row.compression:6} {time_text(row.max_timestamp):23} "
        f"{' '.join(flag for flag, is_set in flags.items() if is_set)}"
    ).rstrip()


def record_line(
    row: RecordRow, secrets: bool = False, decoded: Mapping[str, Any] = NOTHING_DECODED
) -> str:
    """Format a record as one line; `!` marks a batch with an invalid checksum."""
    producer = ""
    if row.producer_id >= 0:
        producer = f"{row.producer_id}/{row.producer_epoch}/{row.sequence}"
    key, value = row.decoded or (None, None)
    # a control record's key is its type; metadata records have none
    hidden = row.control is not None or (row.key is None and value is not None)
    cells = [
        f"{row.position:>10}{'!' if row.crc_valid is False else ' '}{row.offset:>10}",
        f"{time_text(row.timestamp):23} {row.compression:6} {producer:>14}",
        "txn" if row.transactional else "",
        row.control or "",
        "" if hidden else f"{_brief_decoded(decoded, 'keyDecoded', row.key, key, secrets)} ->",
        _brief_decoded(decoded, "valueDecoded", row.value, value, secrets),
        " ".join(f"{header_name(name)}={brief(data, None, secrets)}" for name, data in row.headers),
    ]
    return " ".join(cell for cell in cells if cell)


def brief(data: bytes | None, part: LogPart | None, secrets: bool) -> str:
    """Format a key or value briefly."""
    if data is None:
        return "null"
    if part is None:
        return shortened(_plain(form(data, redact=False)))
    fields = part.to_json(secrets=secrets)
    text = json.dumps(fields.get("message", fields), ensure_ascii=False)
    return shortened(f"{part.name or ''}{text}")


def _brief_decoded(
    decoded: Mapping[str, Any], name: str, data: bytes | None, part: LogPart | None, secrets: bool
) -> str:
    """Format a key or value briefly, decoded if it was."""
    if name not in decoded:
        return brief(data, part, secrets)
    value = decoded[name]
    shown = value["value"] if "value" in value else {"error": value["error"]}
    return shortened(json.dumps(shown, ensure_ascii=False))


def _plain(shown: dict[str, Any]) -> str:
    kind, value = next(iter(shown.items()))
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    return str(value) if kind == "text" else f"0x{value}"


def time_text(timestamp: int) -> str:
    """Format milliseconds as ISO 8601 in UTC; out-of-range values as a number."""
    if timestamp < 0:
        return "" if timestamp == -1 else str(timestamp)
    try:
        moment = datetime.fromtimestamp(timestamp // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03d}"
