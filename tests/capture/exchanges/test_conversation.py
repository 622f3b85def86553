"""The passive machine: stories of connections that were seen whole, in part, from the middle, or
with holes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

import kafkawire
from kafkawire.capture.exchanges.client_detection import MAX_HELD
from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.rows import Row, Status
from tests.capture.machine import feed, finish, gap

CLIENT, BROKER = 0, 1


def request(name: str, version: int, correlation_id: int, **fields: object) -> bytes:
    message = kafkawire.from_json(f"{name}Request", version, fields)
    return kafkawire.encode_frame(message, version, correlation_id, client_id="tester")


def response(name: str, version: int, correlation_id: int, **fields: object) -> bytes:
    message = kafkawire.from_json(f"{name}Response", version, fields)
    return kafkawire.encode_frame(message, version, correlation_id)


METADATA = request("Metadata", 9, 1, topics=[{"name": "orders"}])
METADATA_ANSWER = response("Metadata", 9, 1, clusterId="c", controllerId=3)
HEARTBEAT = request("Heartbeat", 4, 2, groupId="g", memberId="m")
HEARTBEAT_ANSWER = response("Heartbeat", 4, 2, errorCode=27)


class Tap:
    """Feeds a conversation and counts packets: each call is one packet."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.packet = 0
        self.rows: list[Row] = []

    def sends(self, side: int, data: bytes) -> Tap:
        self.packet += 1
        self.rows += feed(self.conversation, side, data, self.packet, self.packet * 1000)
        return self

    def loses(self, side: int, size: int) -> Tap:
        self.rows += gap(self.conversation, side, size, self.packet, self.packet * 1000)
        return self

    def ends(self) -> list[Row]:
        self.rows += finish(self.conversation)
        return self.rows


def seen_from_the_start() -> Tap:
    return Tap(Conversation(client=CLIENT, in_sync=(True, True)))


def seen_from_the_middle() -> Tap:
    return Tap(Conversation())


def summary(rows: Iterable[Row]) -> list[tuple[str, str | None, int | None, str]]:
    return [(r.direction, r.api_name, r.correlation_id, r.status.value) for r in rows]


WHOLE = [
    ("request", "Metadata", 1, "ok"),
    ("response", "Metadata", 1, "ok"),
    ("request", "Heartbeat", 2, "ok"),
    ("response", "Heartbeat", 2, "ok"),
]


def exchange(tap: Tap) -> Tap:
    tap.sends(CLIENT, METADATA).sends(BROKER, METADATA_ANSWER)
    return tap.sends(CLIENT, HEARTBEAT).sends(BROKER, HEARTBEAT_ANSWER)


@pytest.mark.parametrize("tap", [seen_from_the_start, seen_from_the_middle])
def test_an_ordinary_exchange(tap: Callable[[], Tap]) -> None:
    rows = exchange(tap()).ends()
    assert summary(rows) == WHOLE
    assert [r.packet for r in rows] == [1, 2, 3, 4]
    assert rows[3].request_packet == 3
    assert rows[3].client_id == "tester"


def test_every_way_to_cut_two_frames_into_two_packets() -> None:
    stream = METADATA + HEARTBEAT
    for cut in range(1, len(stream)):
        tap = seen_from_the_start().sends(CLIENT, stream[:cut]).sends(CLIENT, stream[cut:])
        rows = tap.ends()
        assert summary(rows) == [WHOLE[0], WHOLE[2]], cut
        assert [r.packet for r in rows] == [1 if cut >= len(METADATA) else 2, 2], cut


def test_byte_by_byte() -> None:
    tap = seen_from_the_start()
    for byte in METADATA + HEARTBEAT:
        tap.sends(CLIENT, bytes([byte]))
    assert [r.packet for r in tap.ends()] == [len(METADATA), len(METADATA) + len(HEARTBEAT)]


def test_responses_pair_by_order_and_correlation_id() -> None:
    tap = seen_from_the_start().sends(CLIENT, METADATA + HEARTBEAT)
    rows = tap.sends(BROKER, HEARTBEAT_ANSWER).ends()
    assert summary(rows)[-1] == ("response", "Heartbeat", 2, "ok")


def test_a_response_to_a_request_that_was_not_seen_is_kept() -> None:
    tap = seen_from_the_start().sends(CLIENT, METADATA)
    rows = tap.sends(BROKER, response("Fetch", 12, 99)).ends()
    assert summary(rows)[-1] == ("response", None, 99, "unpaired")
    assert len(rows[-1].raw) == rows[-1].length - 4


@pytest.mark.parametrize("has_response", [False, True])
def test_a_produce_without_acks_may_or_may_not_have_a_response(has_response: bool) -> None:
    tap = seen_from_the_start().sends(CLIENT, request("Produce", 7, 1, acks=0, timeoutMs=1))
    if has_response:
        tap.sends(BROKER, response("Produce", 7, 1))
    rows = tap.sends(CLIENT, HEARTBEAT).sends(BROKER, HEARTBEAT_ANSWER).ends()
    assert summary(rows)[-1] == WHOLE[3]
    assert {r.status for r in rows} == {Status.OK}


def test_unknown_keys_and_versions_keep_their_header_and_bytes() -> None:
    unknown_api = bytes.fromhex("0000000c03e7000100000005000178aa")
    unknown_version = bytes.fromhex("0000000c000c00630000000600017800")
    tap = seen_from_the_start().sends(CLIENT, METADATA).sends(CLIENT, unknown_api)
    rows = tap.sends(CLIENT, unknown_version).ends()
    assert summary(rows)[1:] == [
        ("request", None, 5, "unknown_api"),
        ("request", "Heartbeat", 6, "unknown_version"),
    ]
    assert rows[1].raw == b"\xaa"
    assert (rows[1].api_key, rows[1].api_version, rows[1].client_id) == (999, 1, "x")


def test_bytes_behind_the_last_field_are_reported_not_lost() -> None:
    raw = (len(HEARTBEAT) - 4 + 3).to_bytes(4, "big") + HEARTBEAT[4:] + b"\x00\x00\x00"
    row = seen_from_the_start().sends(CLIENT, raw).ends()[0]
    assert row.status is Status.LENIENT
    assert "3 bytes after the last field" in row.error
    assert row.message is not None
    assert row.message.encode(4, lenient=True) == raw[-len(row.message.encode(4, lenient=True)) :]


def test_a_malformed_body_is_a_row_with_the_reason() -> None:
    raw = bytearray(HEARTBEAT)
    raw[4 + 8 + 2 + 6 + 1] = 0  # the group id becomes null
    row = seen_from_the_start().sends(CLIENT, bytes(raw)).ends()[0]
    assert row.status is Status.MALFORMED
    assert "HeartbeatRequest.group_id" in row.error


def test_a_client_id_that_is_not_utf8_bends_the_request_and_pairs() -> None:
    raw = HEARTBEAT.replace(b"tester", b"te\xdfter")
    rows = seen_from_the_start().sends(CLIENT, raw).sends(BROKER, HEARTBEAT_ANSWER).ends()
    assert summary(rows) == [
        ("request", "Heartbeat", 2, "lenient"),
        ("response", "Heartbeat", 2, "ok"),
    ]
    assert rows[0].client_id == "te\ufffdter"
    assert "not UTF-8" in rows[0].error
    assert rows[0].message is not None


def test_a_header_that_fails_behind_its_numbers_keeps_them_and_pairs() -> None:
    raw = HEARTBEAT.replace(b"\x00\x06tester", b"\x7f\xfftester")
    tap = seen_from_the_start().sends(CLIENT, METADATA).sends(BROKER, METADATA_ANSWER)
    rows = tap.sends(CLIENT, raw).sends(BROKER, HEARTBEAT_ANSWER).ends()[2:]
    assert summary(rows) == [
        ("request", "Heartbeat", 2, "malformed"),
        ("response", "Heartbeat", 2, "ok"),
    ]
    assert (rows[0].api_key, rows[0].api_version, rows[0].raw) == (12, 4, raw[4:])


# -- holes


def test_a_gap_inside_a_frame_costs_that_frame_alone() -> None:
    tap = seen_from_the_start().sends(CLIENT, METADATA).sends(CLIENT, HEARTBEAT[:10])
    tap.loses(CLIENT, 5).sends(CLIENT, HEARTBEAT[15:]).sends(CLIENT, METADATA)
    rows = tap.ends()
    assert [r.status.value for r in rows] == ["ok", "truncated", "gap", "unparsed", "ok"]
    assert [r.length for r in rows[2:4]] == [5, len(HEARTBEAT) - 15]


def test_the_response_to_a_broken_request_is_still_decoded() -> None:
    tap = seen_from_the_start().sends(CLIENT, HEARTBEAT[:30]).loses(CLIENT, len(HEARTBEAT) - 30)
    rows = tap.sends(BROKER, HEARTBEAT_ANSWER).ends()
    assert summary(rows)[-1] == WHOLE[3]


def test_after_a_gap_of_unknown_shape_the_stream_finds_its_step_again() -> None:
    tap = seen_from_the_start().sends(CLIENT, METADATA).loses(CLIENT, 1000)
    tap.sends(CLIENT, b"\x00\x01\x02 the tail of some frame" + HEARTBEAT).sends(CLIENT, METADATA)
    rows = tap.ends()
    assert [r.status.value for r in rows] == ["ok", "gap", "unparsed", "ok", "ok"]
    assert rows[2].length == len(b"\x00\x01\x02 the tail of some frame")


def test_responses_find_their_step_by_a_request_that_waits() -> None:
    tap = seen_from_the_start().sends(CLIENT, METADATA + HEARTBEAT).loses(BROKER, 77)
    rows = tap.sends(BROKER, METADATA_ANSWER[9:] + HEARTBEAT_ANSWER).ends()
    assert summary(rows)[-1] == WHOLE[3]
    assert [r.status.value for r in rows[2:]] == ["gap", "unparsed", "ok"]


def test_frames_that_are_all_cut_off_find_their_step_again_by_their_headers() -> None:
    """As a snaplen does: of each packet, its first bytes; two frames are in one packet."""
    fetch = request("Fetch", 11, 3, topics=[{"topic": "orders", "partitions": [{}]}] * 2)
    fetched = response("Fetch", 11, 3, responses=[{"topic": "orders", "partitions": []}] * 3)
    tap = seen_from_the_start().sends(CLIENT, METADATA[:30])
    tap.loses(CLIENT, len(METADATA + HEARTBEAT) - 30)
    tap.sends(BROKER, METADATA_ANSWER[:12]).loses(
        BROKER, len(METADATA_ANSWER + HEARTBEAT_ANSWER) - 12
    )
    tap.sends(CLIENT, fetch[:30]).loses(CLIENT, len(fetch) - 30)
    tap.sends(BROKER, fetched[:26]).loses(BROKER, len(fetched) - 26)
    rows = [row for row in exchange(tap).ends() if row.status is not Status.GAP]
    assert summary(rows) == [
        ("request", "Metadata", 1, "truncated"),
        ("response", "Metadata", 1, "truncated"),
        ("request", "Fetch", 3, "truncated"),
        ("response", "Fetch", 3, "truncated"),
        *WHOLE,
    ]


@pytest.mark.parametrize(
    "start",
    [
        bytes(40),
        request("Metadata", 9, 9)[:13] + bytes(30),  # cut behind the start of the client id
        METADATA[:13] + b"\0" + METADATA[14:30],  # an empty client id
        METADATA[:14] + b"\x07" + METADATA[15:30],  # not text
        METADATA[:5] + b"\x7f" + METADATA[6:30],  # no such API
    ],
)
def test_bytes_that_are_no_header_do_not_begin_a_frame(start: bytes) -> None:
    tap = seen_from_the_start().sends(CLIENT, METADATA[:30]).loses(CLIENT, 1000)
    rows = tap.sends(CLIENT, start).loses(CLIENT, 50).ends()
    others = [r for r in rows if r.status is not Status.GAP]
    assert {(r.status.value, r.error) for r in others[1:]} == {("unparsed", "out of sync")}
    assert others[0].status is Status.TRUNCATED


def test_every_start_in_the_middle_finds_the_second_frame_and_invents_none() -> None:
    stream = METADATA + HEARTBEAT
    for cut in range(1, len(METADATA)):
        rows = seen_from_the_middle().sends(CLIENT, stream[cut:]).ends()
        assert summary(r for r in rows if r.is_message) == [WHOLE[2]], cut
        assert sum(r.length + 4 * r.is_message for r in rows) == len(stream) - cut, cut


def test_every_byte_is_in_a_row_wherever_the_capture_ends() -> None:
    stream = METADATA + HEARTBEAT
    for end in range(len(stream)):
        rows = seen_from_the_start().sends(CLIENT, stream[:end]).ends()
        held = sum(
            r.length + 4 if r.is_message else len(r.raw) + 4 * (len(r.raw) < r.length) for r in rows
        )
        assert held == end, (end, rows)


# -- what is not Kafka


OTHERS = [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), "TLS"),
    (b"GET / HTTP/1.1\r\nHost: example\r\n\r\n", "HTTP"),
    (b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(20), "SSH"),
]


@pytest.mark.parametrize(("data", "named"), OTHERS)
def test_other_protocols_are_named_and_counted(data: bytes, named: str) -> None:
    rows = seen_from_the_start().sends(CLIENT, data).sends(BROKER, data).ends()
    assert {(r.status, r.error) for r in rows} == {(Status.OTHER_PROTOCOL, named)}
    assert sum(r.length for r in rows) == 2 * len(data)


def test_an_unknown_flood_is_given_up_and_counted() -> None:
    tap = seen_from_the_middle()
    for _ in range(20):
        tap.sends(CLIENT, b"\xff" * (MAX_HELD // 16))
    rows = tap.ends()
    assert sum(r.length for r in rows) == 20 * (MAX_HELD // 16)
    assert {r.status for r in rows} == {Status.OTHER_PROTOCOL}


# -- SASL


def test_raw_tokens_follow_a_handshake_of_version_0() -> None:
    tap = seen_from_the_start().sends(CLIENT, request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    tap.sends(BROKER, response("SaslHandshake", 0, 1, mechanisms=["PLAIN"]))
    tap.sends(CLIENT, b"\x00\x00\x00\x0d\x00alice\x00secret").sends(BROKER, bytes(4))
    rows = exchange_again(tap).ends()
    assert [r.status.value for r in rows] == ["ok", "ok", "sasl_token", "sasl_token"] + ["ok"] * 4


def exchange_again(tap: Tap) -> Tap:
    return exchange(tap)
