"""Recordings through tshark and through kafkawire: the same messages, the same values.

`make test` compares a few of them, `make soak` all, with those beside the repository.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.rows import Row, Status
from kafkawire.primitives import Structure
from kafkawire.records import RecordBatches
from tests.fuzzing import SOAK
from tests.recordings import ANY_CAPTURE, own, recording, third_party

from . import records
from .expected import expected, shown
from .tshark import PREFIX, Item, dissect

FEW = ("ck-txn", "kcat-kf--loss", "kp22-old-0.9")
"""Recordings of the repository that `make test` compares: transactions, losses, an old client."""
ORDERED = ("--ooo",)
"""Recordings whose segments are out of order: Wireshark has to put them in order."""
UNPAIRED = {"kcat-kf--tinyloss": 1}
"""Responses whose lost request kafkawire puts together again, and Wireshark does not."""


def recordings() -> list[Path]:
    """The recordings that are compared."""
    if SOAK == 1:
        return [recording(f"{name}.pcap") for name in FEW]
    return [*own(ANY_CAPTURE), *third_party("public", ANY_CAPTURE)]


@dataclass(slots=True)
class Compared:
    """What a comparison found."""

    missing: list[Row]
    unpaired: list[Row]
    values: int


def compare(capture: Path) -> Compared:
    """Compare every message, and every value of those that kafkawire decodes byte for byte."""
    name = capture.name.split(".pcap")[0]
    in_order = "TRUE" if name.endswith(ORDERED) else "FALSE"
    found: dict[tuple[int, str | None, str | None], list[Item]] = defaultdict(list)
    preference = f"tcp.reassemble_out_of_order:{in_order}"
    for packet, item in dissect(capture, "-o", preference).messages:
        found[packet, item.value("direction"), item.value("correlation_id")].append(item)
    result = Compared([], [], 0)
    for row in (each.row for each in decode_capture(capture)):
        if row.is_message and row.status is not Status.SASL_TOKEN:
            items = found.get((row.packet, row.direction, str(row.correlation_id)))
            if not items:
                result.missing.append(row)
            else:
                _compare(row, items.pop(0), result)
    return result


def _compare(row: Row, item: Item, result: Compared) -> None:
    assert item.value("length") == str(row.length)
    if row.status in (Status.UNPAIRED, Status.INFERRED):
        return
    if item.value("api_key") is None:
        result.unpaired.append(row)
        return
    assert item.value("api_key") == str(row.api_key)
    assert item.value("api_version") == str(row.api_version)
    if row.direction == "request":
        client = item.find("client_id")
        assert (client.data if client else None) == _hex(row.client_id)
    if row.status is not Status.OK or row.message is None or row.body_version is None:
        return
    values = expected(row.message, row.body_version)
    assert shown(item) == values, f"packet {row.packet}"
    result.values += len(values)
    fields = _record_fields(row.message, row.body_version, item)
    for data, field in fields:
        batches = RecordBatches(data, check_crcs=False)
        assert records.shown(field) == records.expected(batches), f"packet {row.packet}"


def _hex(text: str | None) -> str | None:
    return None if text is None else text.encode().hex()


RECORDS = (
    f"{PREFIX}.produce.topic_data.partition_data.records",
    f"{PREFIX}.fetch.responses.partitions.records",
)


def _record_fields(message: Structure, version: int, item: Item) -> Iterable[tuple[bytes, Item]]:
    """Pair the records fields of a message with their items, in order."""
    items = [each for each in item.walk() if each.name in RECORDS]
    values = [v.value for v in expected(message, version) if v.name in RECORDS]
    return zip(map(bytes.fromhex, values), items, strict=True)


@pytest.mark.fuzz
@pytest.mark.parametrize("capture", recordings(), ids=lambda path: path.name)
def test_messages_and_values_are_those_of_kafkawire(capture: Path) -> None:
    name = capture.name.split(".pcap")[0]
    result = compare(capture)
    assert not result.missing
    assert len(result.unpaired) == UNPAIRED.get(name, 0)
    assert result.values > 0
