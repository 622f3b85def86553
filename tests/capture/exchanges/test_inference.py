"""Responses without requests: inferred from their content, and never wrongly."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.exchanges.inference import Inference
from kafkawire.capture.exchanges.response_layouts import layouts
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.frames.decoding import InFlightRequest, RawFrame
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.rows import Row, Status
from kafkawire.capture.snapshot import attributes
from kafkawire.capture.tcp.connection import Run
from kafkawire.capture.tcp.events import Closed
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY
from kafkawire.capture.tcp.reassembly import Reassembler
from kafkawire.messages import REGISTRY
from kafkawire.primitives import DEFAULT_LIMITS
from tests.capture import truth
from tests.capture.machine import feed, finish
from tests.capture.written import BROKER, CLIENT, request, response

CAPTURES = truth.captures()
OFFSET_COMMIT = 8
TOPICS = [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]
METADATA = {"brokers": [{"nodeId": 1, "host": "broker-1.example", "port": 9092}], "clusterId": "c"}


def responses_alone(path: Path) -> dict[int, list[Row]]:
    """Decode a capture as a tap would see it that has the brokers' packets only."""
    reassembler, parser = Reassembler(DEFAULT_REASSEMBLY), PacketParser()
    events = [e for block in read_capture(path) for e in reassembler.handle(parser.parse(block))]
    events += reassembler.handle(None)
    conversations: dict[int, Conversation] = defaultdict(Conversation)
    rows: dict[int, list[Row]] = defaultdict(list)
    for event in events:
        here = event.connection.id
        if isinstance(event, Run) and event.side == BROKER:
            rows[here] += feed(conversations[here], BROKER, event.data, event.packet, event.time_ns)
        elif isinstance(event, Closed):
            rows[here] += finish(conversations[here])
    return rows


def versions_told(row: Row) -> set[int]:
    """The versions that a row of status `inferred` says it may have."""
    if row.api_version is not None:
        return {row.api_version}
    found = re.search(rf"inferred as {row.api_name} (\d+)-(\d+)", row.error)
    assert found is not None, row.error
    return set(range(int(found[1]), int(found[2]) + 1))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.split(".truth")[0])
def test_responses_alone_are_never_inferred_wrongly(path: Path) -> None:
    wanted = {
        (row["stream"], row["frame"], row["correlation_id"], row["len"]): row
        for row in truth.lines(path)
        if row["dir"] == "resp"
    }
    for connection, rows in responses_alone(truth.capture_of(path)).items():
        for row in rows:
            if not row.is_message:
                continue
            assert row.status in (Status.INFERRED, Status.UNPAIRED)
            true = wanted[connection, row.packet, row.correlation_id or 0, row.length]
            if row.status is Status.INFERRED:
                assert row.api_key == true["api_key"]
                assert true["api_version"] in versions_told(row)


def test_a_good_part_of_real_responses_is_inferred() -> None:
    path = next(path for path in CAPTURES if path.name.startswith("kjs-all"))
    rows = [row for them in responses_alone(truth.capture_of(path)).values() for row in them]
    found = [row for row in rows if row.status is Status.INFERRED]
    assert len(found) > 80
    assert {"ApiVersions", "Metadata", "Fetch"} <= {row.api_name for row in found}


# -- one response at a time


def alone(*frames: bytes) -> list[Row]:
    conversation = Conversation(client=CLIENT, in_sync=(True, True), known_kafka=True)
    rows = []
    for packet, frame in enumerate(frames, 1):
        rows += feed(conversation, BROKER, frame, packet, packet)
    return rows + finish(conversation)


def test_a_response_with_enough_in_it_is_inferred() -> None:
    (row,) = alone(response("Metadata", 13, 5, **METADATA))
    assert (row.status, row.api_name, row.correlation_id) == (Status.INFERRED, "Metadata", 5)
    assert row.api_version == 13
    assert getattr(row.message, "cluster_id", None) == "c"
    assert row.raw == b""
    assert "inferred as Metadata 13" in row.error


def test_versions_that_are_written_alike_are_both_reported() -> None:
    (row,) = alone(response("Metadata", 11, 5, **METADATA))
    assert (row.status, row.api_version) == (Status.INFERRED, None)
    assert "inferred as Metadata 11-12" in row.error


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_response_with_little_in_it_is_kept_as_it_is(version: int) -> None:
    frame = response("Heartbeat", version, 5, errorCode=27)
    (row,) = alone(frame)
    assert row.status is Status.UNPAIRED
    assert row.message is None
    assert row.raw == frame[8:]
    assert "candidates: " in row.error


def test_a_response_that_several_apis_write_alike_is_not_inferred() -> None:
    (row,) = alone(response("OffsetCommit", 3, 5, topics=TOPICS))
    assert row.status is Status.UNPAIRED
    assert "OffsetCommit 3" in row.error
    assert "TxnOffsetCommit" in row.error


def test_of_several_the_one_seen_on_the_connection_is_inferred() -> None:
    conversation = Conversation(client=CLIENT, in_sync=(True, True))
    rows = feed(conversation, CLIENT, request("OffsetCommit", 7, 1, groupId="g"), 1, 1)
    rows += feed(conversation, BROKER, response("OffsetCommit", 7, 1, topics=TOPICS), 2, 2)
    rows += feed(conversation, BROKER, response("OffsetCommit", 7, 9, topics=TOPICS), 3, 3)
    rows += finish(conversation)
    assert [row.status for row in rows] == [Status.OK, Status.OK, Status.INFERRED]
    assert (rows[2].api_name, rows[2].api_version) == ("OffsetCommit", 7)


def test_the_first_response_of_each_version_is_kept_to_learn_from() -> None:
    inference = Inference(DEFAULT_LIMITS)
    responses = []
    for version in (7, 3, 7, 7, 3):
        exchange = InFlightRequest(OFFSET_COMMIT, version, 1, None, 1, 1)
        frame = response("OffsetCommit", version, 1, topics=TOPICS)[4:]
        responses.append(RawFrame(False, frame, 2, 2, exchange, 4, ""))
        inference.add_response(responses[-1], exchange)
    assert list(attributes(inference)["_undecoded"].values()) == responses[:2]


def test_a_damaged_response_is_not_learned_from_but_a_later_one_is() -> None:
    rows = []
    conversation = Conversation(client=CLIENT, in_sync=(True, True))
    good = response("OffsetCommit", 7, 1, topics=TOPICS)
    damaged = (len(good) - 5).to_bytes(4, "big") + good[4:-1]
    for number, answer in enumerate([damaged, good], 1):
        asked = request("OffsetCommit", 7, 1, groupId="g")
        rows += feed(conversation, CLIENT, asked, 3 * number, 1)
        rows += feed(conversation, BROKER, answer, 3 * number + 1, 2)
        unpaired = response("OffsetCommit", 7, 0, topics=TOPICS)
        rows += feed(conversation, BROKER, unpaired, 3 * number + 2, 3)
    rows += finish(conversation)
    assert [row.status for row in rows if row.correlation_id == 0] == [
        Status.UNPAIRED,
        Status.INFERRED,
    ]


def test_values_that_make_no_sense_are_no_fit() -> None:
    good = response("Metadata", 12, 5, **METADATA)
    at = good.index(b"broker-1")
    (row,) = alone(good[:at] + b"\x01\x02" + good[at + 2 :])
    assert row.status is Status.UNPAIRED


def test_noise_between_responses_is_never_inferred() -> None:
    noise = bytes((7 * n) % 251 for n in range(200))
    rows = alone(len(noise).to_bytes(4, "big") + noise)
    assert [row.status for row in rows] == [Status.UNPAIRED]


def test_a_side_alone_is_recognised_without_any_hint() -> None:
    conversation = Conversation()
    rows = feed(conversation, 1, response("Heartbeat", 3, 1), 1, 1)
    assert rows == []
    feed(conversation, 1, response("Metadata", 12, 2, **METADATA), 2, 2)
    rows = finish(conversation)
    assert [row.status for row in rows] == [Status.UNPAIRED, Status.INFERRED]
    assert conversation.client == 0


def test_every_version_of_every_response_has_a_layout() -> None:
    found = {(one.api_key, v) for one in layouts() for v in range(one.first, one.last + 1)}
    wanted = {
        (info.api_key, version)
        for info in REGISTRY
        if info.type == "response" and info.api_key is not None
        for version in range(info.first, info.last + 1)
    }
    assert found == wanted


# -- versions that we do not know


def unknown_version(body: bytes, version: int = 99) -> Row:
    frame = request("Heartbeat", 4, 1, groupId="group", memberId="member")
    head = frame[4:6] + version.to_bytes(2, "big") + frame[8:12] + frame[12:20] + b"\0"
    framed = head + body
    conversation = Conversation(client=CLIENT, in_sync=(True, True), known_kafka=True)
    rows = feed(conversation, CLIENT, len(framed).to_bytes(4, "big") + framed, 1, 1)
    return (rows + finish(conversation))[0]


BODY = request("Heartbeat", 4, 1, groupId="group", memberId="member")[21:]


def test_a_body_that_fits_the_nearest_version_is_guessed() -> None:
    row = unknown_version(BODY)
    assert (row.status, row.api_version, row.body_version) == (Status.GUESSED, 99, 4)
    assert getattr(row.message, "group_id", None) == "group"
    assert "has versions 0-4, not 99; it fits version 4" in row.error


def test_a_body_with_something_new_at_its_end_is_guessed_and_says_so() -> None:
    row = unknown_version(BODY + b"\1\2\3")
    assert (row.status, row.body_version) == (Status.GUESSED, 4)
    assert "3 bytes after the last field" in row.error


@pytest.mark.parametrize("body", [BODY[:3], bytes(5) + bytes(40)])
def test_a_body_that_does_not_fit_is_left_and_says_how_far_it_goes(body: bytes) -> None:
    row = unknown_version(body)
    assert (row.status, row.message, row.raw) == (Status.UNKNOWN_VERSION, None, body)
    assert "as version 4: " in row.error
