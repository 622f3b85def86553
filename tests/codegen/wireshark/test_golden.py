"""Golden messages of every API and version through tshark: the same values, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.messages import REGISTRY
from kafkawire.messages.fetch_request import FetchRequest
from kafkawire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkawire.records import RecordBatches
from tests import golden
from tests.capture.written import BROKER, CLIENT, Scenario
from tests.fuzzing import SOAK

from . import frames, records
from .expected import expected, shown
from .tshark import dissect


@pytest.mark.fuzz
def test_every_version_of_every_message(tmp_path: Path) -> None:
    """One vector of each; `make soak` takes all."""
    capture = tmp_path / "golden.pcap"
    sent = frames.golden_traffic(capture, most=1 if SOAK == 1 else None)
    assert {(s.row["message"], s.version) for s in sent} == {
        (info.name, version)
        for info in REGISTRY
        if info.type in ("request", "response")
        for version in range(info.first, info.last + 1)
    }
    found = dissect(capture).messages
    by_id = {(item.value("direction"), item.value("correlation_id")): item for _, item in found}
    assert len(by_id) == len(found) == len(sent)
    for each in sent:
        item = by_id[each.direction, str(each.correlation_id)]
        where = f"{each.row['message']} v{each.version} {each.row['kind']}"
        assert item.value("api_version") == str(each.version), where
        assert shown(item) == expected(each.message(), each.version), where


def test_every_record_batch(tmp_path: Path) -> None:
    """Golden batches of every magic and codec, as what a Fetch response brings."""
    rows = list(golden.rows("record_batches"))
    scenario = Scenario()
    for number, row in enumerate(rows):
        as_fetched(scenario, number, bytes.fromhex(row["hex"]))
    found = dissect(scenario.save(tmp_path / "records.pcap")).messages
    responses = [item for _, item in found if item.value("direction") == "response"]
    assert len(responses) == len(rows)
    for row, item in zip(rows, responses, strict=True):
        field = item.find("fetch.responses.partitions.records")
        assert field is not None
        batches = RecordBatches(bytes.fromhex(row["hex"]), check_crcs=False)
        if row["kind"] != "bad-crc":  # corrupt records: where each reader stops is its own
            assert records.shown(field) == records.expected(batches), row["kind"]


def as_fetched(scenario: Scenario, number: int, records: bytes) -> None:
    """Send a Fetch request, and a response that brings these bytes."""
    partition = PartitionData(records=records)
    filled = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    frames.send(scenario, CLIENT, frames.request(1, 4, number, FetchRequest().encode(4)))
    frames.send(scenario, BROKER, frames.response(1, 4, number, filled.encode(4)))
