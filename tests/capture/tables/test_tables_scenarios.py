"""Tests tables of handwritten captures, row by row."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkawire.capture import tables
from kafkawire.protocol.json_form import uuid_text
from kafkawire.records import BatchBuilder
from tests.capture.written import BROKER, CLIENT, Scenario, request, response
from tests.conftest import FIXTURES
from tests.recordings import own, recording

ORDERS = uuid_text(bytes(range(16)))
ENDS = {"client": "10.0.0.1:50000", "broker": "10.0.0.2:9092"}
START = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)

Rows = list[dict[str, Any]]


def rows(source: Path | Sequence[Path], table: str, **options: Any) -> Rows:
    chosen = list(source) if not isinstance(source, Path) else source
    return [row for batch in tables.read(chosen, table, **options) for row in batch.to_pylist()]


def only(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def batch(*values: bytes) -> str:
    builder = BatchBuilder(producer_id=9, producer_epoch=1, base_sequence=5)
    for number, value in enumerate(values):
        builder.append(b"k", value, 1000 + number, (("h", b"x"),))
    return base64.b64encode(builder.build()).decode()


# -- a capture by hand: packet 1 and 2 open, 3 and 4 are Metadata, 5 and 6 a Produce, 7 one with
#    acks=0, 8 and 9 close


@pytest.fixture
def written(tmp_path: Path) -> Path:
    scenario = Scenario()
    scenario.request("Metadata", 12, topics=[{"name": "orders"}])
    scenario.respond(
        "Metadata",
        12,
        throttleTimeMs=7,
        topics=[{"name": "orders", "topicId": ORDERS, "errorCode": 0}],
    )
    partitions = [{"index": 2, "records": batch(b"one", b"two")}]
    scenario.request(
        "Produce", 9, acks=-1, topicData=[{"name": "orders", "partitionData": partitions}]
    )
    responded = [{"index": 2, "errorCode": 6, "baseOffset": 40, "logStartOffset": 3}]
    scenario.respond("Produce", 9, responses=[{"name": "orders", "partitionResponses": responded}])
    scenario.request(
        "Produce", 9, acks=0, topicData=[{"name": "orders", "partitionData": partitions}]
    )
    return scenario.close().save(tmp_path / "hand.pcap")


def test_exchanges_by_hand(written: Path) -> None:
    metadata, produce, silent = rows(written, "exchanges")
    assert metadata == {
        "file": str(written),
        "packet": 3,
        "time": START.replace(microsecond=2000),
        "time_ns": 1_700_000_000_002_000_000,
        "connection": 0,
        **ENDS,
        "api_key": 3,
        "api_name": "Metadata",
        "api_version": 12,
        "correlation_id": 0,
        "client_id": "tester",
        "response_file": str(written),
        "response_packet": 4,
        "request_bytes": 45,  # 17 of the header, 28 of the body
        "request_status": "ok",
        "response_time": START.replace(microsecond=3000),
        "response_time_ns": 1_700_000_000_003_000_000,
        "response_bytes": 49,
        "response_status": "ok",
        "latency_ns": 1_000_000,
        "error_codes": [],
        "errors": [],
        "throttle_time_ms": 7,
        "max_wait_ms": None,
        "topics": ["orders"],
        "partitions": [],
        "partitions_complete": None,
        "group_ids": [],
        "transactional_ids": [],
    }
    assert only(produce, "error_codes", "errors", "partitions") == {
        "error_codes": [6],
        "errors": ["NOT_LEADER_OR_FOLLOWER"],
        "partitions": [{"topic": "orders", "topic_id": None, "partitions": [2]}],
    }
    assert only(silent, "packet", "response_packet", "response_status", "latency_ns") == {
        "packet": 7,
        "response_packet": None,
        "response_status": None,
        "latency_ns": None,
    }


def test_partitions_by_hand(written: Path) -> None:
    produce, silent = rows(written, "partitions")
    said = {name: value for name, value in produce.items() if value is not None}
    assert said == {
        "file": str(written),
        "packet": 5,
        "time": START.replace(microsecond=4000),
        "time_ns": 1_700_000_000_004_000_000,
        "connection": 0,
        **ENDS,
        "api_key": 0,
        "api_name": "Produce",
        "api_version": 9,
        "correlation_id": 4,
        "client_id": "tester",
        "response_file": str(written),
        "response_packet": 6,
        "topic": "orders",
        "partition": 2,
        "requested": True,
        "responded": True,
        "error_code": 6,
        "error": "NOT_LEADER_OR_FOLLOWER",
        "offset": 40,
        "timestamp_ms": -1,
        "log_start_offset": 3,
        "records_bytes": 91,  # 61 of the batch header, 15 a record
        "batches": 1,
        "records": 2,
    }
    assert only(silent, "responded", "error_code", "records") == {
        "responded": False,
        "error_code": None,
        "records": 2,
    }


def test_records_by_hand(written: Path) -> None:
    first, second, *silent = rows(written, "records")
    assert first == {
        "file": str(written),
        "packet": 5,
        "time": START.replace(microsecond=4000),
        "time_ns": 1_700_000_000_004_000_000,
        "connection": 0,
        **ENDS,
        "direction": "produce",
        "client_id": "tester",
        "correlation_id": 4,
        "topic": "orders",
        "topic_id": None,
        "partition": 2,
        "offset": 0,
        "timestamp": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "timestamp_ms": 1000,
        "timestamp_type": "create_time",
        "key": b"k",
        "value": b"one",
        "headers": [{"key": "h", "value": b"x", "key_bytes": None}],
        "magic": 2,
        "codec": "none",
        "producer_id": 9,
        "producer_epoch": 1,
        "sequence": 5,
        "transactional": False,
        "control": False,
        "partition_leader_epoch": -1,
        "base_offset": 0,
    }
    assert only(second, "offset", "value", "sequence") == {
        "offset": 1,
        "value": b"two",
        "sequence": 6,
    }
    assert [row["packet"] for row in silent] == [7, 7]


def test_messages_by_hand(written: Path) -> None:
    requested, responded, *_ = rows(written, "messages")
    assert only(requested, "direction", "status", "error", "request_packet", "raw") == {
        "direction": "request",
        "status": "ok",
        "error": None,
        "request_packet": None,
        "raw": None,
    }
    assert json.loads(requested["body"])["topics"][0]["name"] == "orders"
    assert only(responded, "packet", "request_packet", "latency_ns") == {
        "packet": 4,
        "request_packet": 3,
        "latency_ns": 1_000_000,
    }


def test_connections_by_hand(written: Path) -> None:
    (row,) = rows(written, "connections")
    assert only(row, "protocol", "first_packet", "last_packet", "requests", "responses") == {
        "protocol": "kafka",
        "first_packet": 1,
        "last_packet": 9,
        "requests": 3,
        "responses": 2,
    }
    assert row["versions"] == [
        {"api_key": 0, "api_name": "Produce", "api_version": 9, "requests": 2},
        {"api_key": 3, "api_name": "Metadata", "api_version": 12, "requests": 1},
    ]
    assert row["client_ids"] == ["tester"]
    assert not row["reset"]


def test_a_capture_without_problems(written: Path) -> None:
    assert rows(written, "problems") == []


def test_batches_are_bounded_and_of_one_schema(written: Path) -> None:
    found = list(tables.read(written, "records", batch_rows=3))
    assert [len(batch) for batch in found] == [3, 1]
    assert {batch.schema for batch in found} == {tables.TABLES["records"].schema}


def test_an_unknown_table(written: Path) -> None:
    with pytest.raises(KeyError):
        tables.read(written, "offsets")


# -- names of topics


def fetches_by_id(scenario: Scenario) -> Scenario:
    topics = [{"topicId": ORDERS, "partitions": [{"partition": 1, "fetchOffset": 7}]}]
    scenario.request("Fetch", 13, topics=topics)
    fetched = [{"topicId": ORDERS, "partitions": [{"partitionIndex": 1, "highWatermark": 9}]}]
    return scenario.respond("Fetch", 13, responses=fetched)


def names_the_topic(scenario: Scenario) -> Scenario:
    scenario.request("Metadata", 12)
    return scenario.respond("Metadata", 12, topics=[{"name": "orders", "topicId": ORDERS}])


def test_a_later_topic_name_applies_to_earlier_rows(tmp_path: Path) -> None:
    file = names_the_topic(fetches_by_id(Scenario())).save(tmp_path / "late.pcap")
    # a batch of one row goes out before the name was read
    fetch, _ = rows(file, "exchanges", batch_rows=1)
    assert fetch["topics"] == ["orders"]
    assert fetch["partitions"] == [{"topic": "orders", "topic_id": ORDERS, "partitions": [1]}]
    (partition,) = rows(file, "partitions", batch_rows=1)
    assert only(partition, "topic", "topic_id", "request_offset", "high_watermark") == {
        "topic": "orders",
        "topic_id": ORDERS,
        "request_offset": 7,
        "high_watermark": 9,
    }


def test_a_topic_name_in_a_later_file_applies_to_earlier_rows(tmp_path: Path) -> None:
    scenario = names_the_topic(fetches_by_id(Scenario()))
    files = [scenario.save(tmp_path / "b.pcap", 4), scenario.save(tmp_path / "a.pcap", 0, 4)]
    fetch, _ = rows(files, "exchanges", batch_rows=1)
    assert fetch["topics"] == ["orders"]


def test_an_unknown_topic_name_leaves_the_id(tmp_path: Path) -> None:
    file = fetches_by_id(Scenario()).save(tmp_path / "never.pcap")
    (fetch,) = rows(file, "exchanges")
    assert fetch["topics"] == [ORDERS]
    assert fetch["partitions"] == [{"topic": None, "topic_id": ORDERS, "partitions": [1]}]


def test_a_stream_has_the_topic_names_seen_so_far(tmp_path: Path) -> None:
    file = names_the_topic(fetches_by_id(Scenario())).save(tmp_path / "late.pcap")
    with file.open("rb") as stream:
        found = [
            row for b in tables.read(stream, "exchanges", batch_rows=1) for row in b.to_pylist()
        ]
    assert found[0]["topics"] == [ORDERS]
    assert found[0]["file"] == "-"


# -- fetch sessions


def test_an_incremental_fetch_has_the_partitions_of_its_session(tmp_path: Path) -> None:
    scenario = Scenario()
    topics = [{"topic": "orders", "partitions": [{"partition": 0}, {"partition": 1}]}]
    scenario.request("Fetch", 12, sessionId=0, sessionEpoch=0, topics=topics)
    scenario.respond("Fetch", 12, sessionId=5)
    scenario.request("Fetch", 12, sessionId=5, sessionEpoch=1)
    fetched = [{"topic": "orders", "partitions": [{"partitionIndex": 1, "highWatermark": 3}]}]
    scenario.respond("Fetch", 12, sessionId=5, responses=fetched)
    file = scenario.save(tmp_path / "session.pcap")
    whole = [{"topic": "orders", "topic_id": None, "partitions": [0, 1]}]
    assert [row["partitions"] for row in rows(file, "exchanges")] == [whole, whole]
    assert [
        tuple(row[name] for name in ("partition", "requested", "in_session", "responded"))
        for row in rows(file, "partitions")
    ] == [
        (0, True, False, False),
        (1, True, False, False),
        (0, False, True, False),
        (1, False, True, True),
    ]


@pytest.mark.parametrize("table", ["exchanges", "partitions"])
@pytest.mark.parametrize("beside", [(), ("connections",)], ids=["alone", "beside rows"])
def test_batches_are_complete_before_all_exchanges_of_large_sessions(
    table: str, beside: tuple[str, ...], tmp_path: Path
) -> None:
    """A row of a session takes any memory, however small its messages are: few of them wait."""
    scenario = Scenario()
    topics = [{"topic": "orders", "partitions": [{"partition": each} for each in range(1000)]}]
    scenario.request("Fetch", 12, sessionId=0, sessionEpoch=0, topics=topics)
    scenario.respond("Fetch", 12, sessionId=5)
    for epoch in range(1, 600):
        scenario.request("Fetch", 12, sessionId=5, sessionEpoch=epoch)
        scenario.respond("Fetch", 12, sessionId=5)
    file = scenario.save(tmp_path / "session.pcap")
    waiting = [
        sum(len(row[0]["partitions"]) for row in batch.column("partitions").to_pylist())
        if table == "exchanges"
        else len(batch)
        for name, batch in tables.read_tables(file, [table, *beside], batch_rows=100_000)
        if name == table
    ]
    assert sum(waiting) == 600 * 1000
    assert max(waiting) <= 300_000


def test_how_long_a_fetch_may_wait(tmp_path: Path) -> None:
    """From the request, also without a response; zero is a number."""
    scenario = Scenario()
    for max_wait_ms in (500, 0):
        scenario.request("Fetch", 12, maxWaitMs=max_wait_ms)
        scenario.respond("Fetch", 12, throttleTimeMs=3)
    scenario.request("Fetch", 4, maxWaitMs=2**31 - 1)
    file = scenario.save(tmp_path / "waits.pcap")
    assert [(row["max_wait_ms"], row["throttle_time_ms"]) for row in rows(file, "exchanges")] == [
        (500, 3),
        (0, 3),
        (2**31 - 1, None),
    ]


# -- several files


@pytest.mark.parametrize("name", ["kcat-kf", "mixed-a"])
def test_a_rotated_set_is_one_capture(name: str) -> None:
    whole = recording(f"{name}.pcap")
    parts = own(f"{name}--rot?.pcap")
    assert len(parts) > 1
    names = ("connection", "direction", "api_key", "correlation_id", "length", "time_ns", "status")
    found = rows([*parts[1:], parts[0]], "messages")
    assert [only(row, *names) for row in found] == [
        only(row, *names) for row in rows(whole, "messages")
    ]
    assert {row["file"] for row in found} == {str(part) for part in parts}


def test_packets_are_numbered_in_their_own_files() -> None:
    from tests.capture import truth

    parts = own("kcat-kf--rot?.pcap")
    wanted = [
        (str(parts[row["file"]]), row["frame"])
        for row in truth.lines(recording("kcat-kf--rot.truth.jsonl.gz"))
    ]
    assert [(row["file"], row["packet"]) for row in rows(parts, "messages")] == wanted


# -- who a client is


def test_software_and_sasl_mechanism(tmp_path: Path) -> None:
    scenario = Scenario()
    scenario.request(
        "ApiVersions", 3, clientSoftwareName="librdkafka", clientSoftwareVersion="2.16.0"
    )
    scenario.respond("ApiVersions", 3)
    scenario.request("SaslHandshake", 1, mechanism="SCRAM-SHA-512")
    scenario.respond("SaslHandshake", 1, mechanisms=["SCRAM-SHA-512"])
    scenario.request("SaslAuthenticate", 2, authBytes="c2VjcmV0")
    scenario.respond("SaslAuthenticate", 2)
    file = scenario.save(tmp_path / "sasl.pcap")
    (row,) = rows(file, "connections")
    assert only(row, "client_software_name", "client_software_version", "sasl_mechanism") == {
        "client_software_name": "librdkafka",
        "client_software_version": "2.16.0",
        "sasl_mechanism": "SCRAM-SHA-512",
    }
    hidden = rows(file, "messages")[4]["body"]
    assert "c2VjcmV0" not in hidden
    assert "redacted" in hidden
    assert "c2VjcmV0" in rows(file, "messages", secrets=True)[4]["body"]


# -- problems


def test_a_corrupt_batch_is_a_problem_and_affects_no_other(tmp_path: Path) -> None:
    good = base64.b64decode(batch(b"one"))
    bad = good[:-1] + bytes([good[-1] ^ 1])
    records = base64.b64encode(bad + good).decode()
    partitions = [{"index": 0, "records": records}]
    scenario = Scenario()
    scenario.request(
        "Produce", 9, acks=0, topicData=[{"name": "orders", "partitionData": partitions}]
    )
    file = scenario.save(tmp_path / "broken.pcap")
    (problem,) = rows(file, "problems")
    assert problem["kind"] == "records"
    assert problem["error"].startswith("orders-0: batch[0]: the checksum is")
    assert [row["value"] for row in rows(file, "records")] == [b"one"]


def test_gaps_are_problems() -> None:
    found = rows(FIXTURES / "captures" / "kcat-kf--loss.pcap", "problems")
    kinds = {row["kind"] for row in found}
    assert "gap" in kinds
    lost = sum(row["length"] for row in found if row["kind"] == "gap")
    connections = rows(FIXTURES / "captures" / "kcat-kf--loss.pcap", "connections")
    assert sum(row["gap_bytes"] for row in connections) == lost


def test_invalid_utf_8_is_escaped(tmp_path: Path) -> None:
    frame = request("Metadata", 9, 1, topics=[{"name": "orders"}])
    at = frame.index(b"orders")
    scenario = Scenario().send(CLIENT, request("Metadata", 9, 0))
    scenario.send(BROKER, response("Metadata", 9, 0))
    scenario.send(CLIENT, frame[:at] + b"\xff" + frame[at + 1 :])
    file = scenario.save(tmp_path / "text.pcap")
    assert rows(file, "exchanges")[1]["topics"] == ["\\udcffrders"]
    assert rows(file, "messages")[2]["status"] == "lenient"


def test_a_file_that_is_not_a_capture(tmp_path: Path) -> None:
    from kafkawire.errors import CaptureError

    file = tmp_path / "text.pcap"
    file.write_text("no capture at all")
    with pytest.raises(CaptureError):
        rows(file, "messages")


# -- damage


@pytest.mark.parametrize("seed", range(8))
def test_corrupt_captures_never_fail(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    names = ("ck-848", "ck-txn", "kjs-all", "fg-max-v0.11.0", "ck-group-range", "kcat-kf")
    whole = bytearray((FIXTURES / "captures" / f"{names[seed % len(names)]}.pcap").read_bytes())
    for _ in range(rng.choice([5, 40, 200])):
        whole[rng.randrange(24, len(whole))] = rng.randrange(256)
    file = tmp_path / "damaged.pcap"
    file.write_bytes(whole[: rng.randrange(len(whole) // 2, len(whole))])
    found = {name: rows(file, name) for name in tables.TABLES}
    requested = sum(row["direction"] == "request" for row in found["messages"])
    assert sum(row["requests"] for row in found["connections"]) == requested
    # a request that is cut in the middle is an exchange too, and no message
    exchanges = [
        row for row in found["exchanges"] if row["request_status"] not in (None, "truncated")
    ]
    tokens = sum(row["status"] == "sasl_token" for row in found["messages"])
    assert len(exchanges) == requested - tokens
