"""Frames against Apache Kafka's, in both directions, and every way a frame can be wrong."""

from __future__ import annotations

import tracemalloc

import pytest

import kafkawire
from kafkawire import ApiKey, ErrorCode, Limits
from kafkawire.errors import (
    DecodeError,
    InvalidLength,
    InvalidValue,
    LimitExceeded,
    OutOfRange,
    TrailingBytes,
    Truncated,
    UnknownApiKey,
    UnsupportedVersion,
)
from kafkawire.messages import REGISTRY
from kafkawire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkawire.protocol import request_header_version, response_header_version
from kafkawire.protocol.frame import encode_response_buffers
from tests import golden


def test_every_frame_decodes_and_encodes_to_the_same_bytes() -> None:
    frames = 0
    for row in golden.rows("frames"):
        where = f"{row['message']} v{row['version']} {row['kind']}"
        raw = bytes.fromhex(row["hex"])
        response_to = (row["api_key"], row["version"]) if row["type"] == "response" else None
        frame = kafkawire.decode_frame(raw, response_to=response_to)
        assert frame.size == len(raw) - 4, where
        assert frame.header_version == row["header_version"], where
        assert (frame.api_key, frame.api_version) == (row["api_key"], row["version"]), where
        assert frame.correlation_id == row["header"]["CorrelationId"], where
        assert frame.is_request == (row["type"] == "request"), where
        assert frame.body == kafkawire.decode(
            row["message"], frame.body_version, frame.body.encode(frame.body_version)
        )
        again = kafkawire.encode_frame(
            frame.body,
            frame.body_version,
            frame.correlation_id,
            client_id=row["header"].get("ClientId"),
            header_tags=frame.header.unknown_tags,
        )
        assert again == raw, where
        none = "" if frame.is_request else None
        assert frame.client_id == row["header"].get("ClientId", none), where
        assert frame.encode() == raw, where
        frames += 1
    assert frames == 2208


def test_a_broker_encodes_responses_without_a_header_object_to_the_same_bytes() -> None:
    frames = 0
    for row in golden.rows("frames"):
        if row["type"] != "response":
            continue
        raw = bytes.fromhex(row["hex"])
        frame = kafkawire.decode_frame(raw, response_to=(row["api_key"], row["version"]))
        if frame.header.unknown_tags:
            continue
        pieces = encode_response_buffers(frame.body, frame.body_version, frame.correlation_id)
        assert b"".join(pieces) == raw, f"{row['message']} v{row['version']} {row['kind']}"
        frames += 1
    assert frames > 500
    records = PartitionProduceData(index=0, records=bytes(100))
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[records])])
    with pytest.raises(UnknownApiKey, match="ProduceRequest is not a response"):
        encode_response_buffers(request, 9, 1)


def test_header_versions_are_those_of_the_facts() -> None:
    for row in golden.rows("frames"):
        of = request_header_version if row["type"] == "request" else response_header_version
        assert of(row["api_key"], row["version"]) == row["header_version"], row["message"]


def test_a_frame_cut_anywhere_is_truncated() -> None:
    whole = kafkawire.encode_frame(
        kafkawire.from_json("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"}), 4, 7
    )
    for cut in range(len(whole)):
        with pytest.raises(DecodeError):
            kafkawire.decode_frame(whole[:cut])
    with pytest.raises(TrailingBytes, match="1 byte after the frame"):
        kafkawire.decode_frame(whole + b"\x00")


WRONG = [
    ("ffffffff", InvalidLength, "a frame of -1 bytes"),
    ("7fffffff", LimitExceeded, "max_frame_bytes is 104857600"),
    ("0000000400120000", Truncated, "RequestHeader"),
    ("0000000a270f000000000001ffff", UnknownApiKey, "unknown API key 9999"),
    ("0000000a0012006300000001ffff", DecodeError, ""),
]


@pytest.mark.parametrize(("text", "error", "says"), WRONG)
def test_invalid_frames_name_the_error(text: str, error: type[Exception], says: str) -> None:
    with pytest.raises((error, UnsupportedVersion)) as caught:
        kafkawire.decode_frame(bytes.fromhex(text))
    assert says in str(caught.value)


def test_the_largest_frame_is_a_setting() -> None:
    frame = kafkawire.encode_frame(kafkawire.from_json("ListGroupsRequest", 0, {}), 0, 1)
    with pytest.raises(LimitExceeded):
        kafkawire.decode_frame(frame, limits=Limits(max_frame_bytes=8))


def test_error_offsets_count_from_the_first_byte_of_the_frame() -> None:
    frame = bytearray(
        kafkawire.encode_frame(kafkawire.from_json("HeartbeatRequest", 4, {"groupId": "g"}), 4, 7)
    )
    body_at = len(frame) - len(
        kafkawire.from_json("HeartbeatRequest", 4, {"groupId": "g"}).encode(4)
    )
    frame[body_at] = 0  # the group id becomes null
    with pytest.raises(kafkawire.DecodeError) as caught:
        kafkawire.decode_frame(bytes(frame))
    assert caught.value.path == "HeartbeatRequest.group_id"
    assert caught.value.offset == body_at


# -- headers that are wrong: Heartbeat v4 (header 2) up to the client id, then what each row has

HEAD = "000c0004 00000007"


def framed(rest: str) -> bytes:
    data = bytes.fromhex(HEAD + rest)
    return len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("rest", "offset", "reason"),
    [
        ("0005 63", 14, "5 bytes wanted, 1 left"),
        ("0001", 14, "1 byte wanted, 0 left"),
        ("ffff ffffffffffff", 14, "a varint goes on after its fifth byte"),
        ("0003 61e962 00", 15, "the client id is not UTF-8"),
        ("ffff", 14, "the data ends inside the header"),
    ],
)
def test_an_invalid_header_has_the_offset(rest: str, offset: int, reason: str) -> None:
    with pytest.raises(DecodeError) as caught:
        kafkawire.decode_frame(framed(rest))
    found = (caught.value.path, caught.value.offset, caught.value.reason)
    assert found == ("RequestHeader", offset, reason)


def test_a_client_id_that_is_not_utf8_is_kept_where_lenient() -> None:
    raw = framed("0003 61e962 00" + "0267000000010 26d0000".replace(" ", ""))
    frame = kafkawire.decode_frame(raw, lenient=True)
    assert frame.header.deviations is not None
    assert (frame.header.deviations.invalid_text, frame.body.deviations) == (1, None)
    client_id = frame.client_id
    assert client_id == "a\udce9b"
    assert kafkawire.encode_frame(frame.body, 4, 7, client_id=client_id, lenient=True) == raw
    assert frame.encode(lenient=True) == raw
    with pytest.raises(InvalidValue, match=r"RequestHeader\.client_id"):
        frame.encode()


def test_tags_of_a_header_count_against_the_limit() -> None:
    raw = framed("ffff" + "03 0100 0200 0300")
    with pytest.raises(LimitExceeded) as caught:
        kafkawire.decode_frame(raw, limits=Limits(max_elements=2))
    assert caught.value.path == "RequestHeader"


def test_a_header_is_encoded_as_strictly_as_a_body() -> None:
    message = kafkawire.from_json("HeartbeatRequest", 4, {})
    with pytest.raises(OutOfRange, match=r"RequestHeader\.correlation_id"):
        kafkawire.encode_frame(message, 4, 2**31)
    with pytest.raises(InvalidValue, match=r"RequestHeader\.client_id"):
        kafkawire.encode_frame(message, 4, 1, client_id="\udce9")
    with pytest.raises(UnsupportedVersion):
        kafkawire.encode_frame(message, 2**40, 1)


# -- ApiVersions, where a response may be of another version than was requested (KIP-511)

FALLBACK = bytes.fromhex("0000001000000007002300000001001200000003")


def test_the_response_to_an_unsupported_apiversions_request_has_version_0() -> None:
    frame = kafkawire.decode_frame(FALLBACK, response_to=(ApiKey.API_VERSIONS, 4))
    assert (frame.api_version, frame.body_version) == (4, 0)
    body = kafkawire.to_json(frame.body, 0)
    assert body["errorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert body["apiKeys"] == [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]


def test_error_35_in_the_requested_version_is_decoded_too() -> None:
    body = kafkawire.from_json("ApiVersionsResponse", 3, {"errorCode": 35})
    frame = kafkawire.encode_frame(body, 3, 7)
    assert kafkawire.decode_frame(frame, response_to=(18, 3)).body_version == 3


def test_the_malformed_fallback_of_a_mock_broker_is_lenient_not_lost() -> None:
    raw = bytes.fromhex("000000110000000100230100120000000200000000")
    with pytest.raises(DecodeError):
        kafkawire.decode_frame(raw, response_to=(18, 3))
    frame = kafkawire.decode_frame(raw, response_to=(18, 3), lenient=True)
    assert frame.body.deviations is not None
    assert frame.body.deviations.trailing != b""


def test_a_message_without_a_frame_has_none() -> None:
    with pytest.raises(UnknownApiKey, match="TopicRecord"):
        kafkawire.encode_frame(kafkawire.from_json("TopicRecord", 0, {}), 0, 1)


def test_every_request_has_a_response_and_an_api_key() -> None:
    requests = {info.api_key for info in REGISTRY if info.type == "request"}
    assert requests == {info.api_key for info in REGISTRY if info.type == "response"}
    assert requests == {int(key) for key in ApiKey}


@pytest.mark.parametrize("lenient", [False, True])
def test_a_large_body_is_decoded_where_it_is(lenient: bool) -> None:
    """Its records are copied once; a body of its own would be a second copy."""
    size = 1 << 20
    data = ProduceRequest(
        topic_data=[
            TopicProduceData(
                name="t", partition_data=[PartitionProduceData(index=0, records=bytes(size))]
            )
        ]
    )
    frame = kafkawire.encode_frame(data, 9, 5, client_id="me")
    kafkawire.decode_frame(frame, lenient=lenient)
    tracemalloc.start()
    try:
        found = kafkawire.decode_frame(frame, lenient=lenient)
        assert tracemalloc.get_traced_memory()[1] < size * 1.5
    finally:
        tracemalloc.stop()
    assert found.body == data
    with pytest.raises(kafkawire.DecodeError) as error:
        kafkawire.decode_frame((len(frame) - 6).to_bytes(4, "big") + frame[4:-2])
    assert error.value.path
    assert error.value.offset is not None
    assert error.value.offset > size


def test_a_frame_without_its_size_is_recognised() -> None:
    for row in golden.rows("frames"):
        raw = bytes.fromhex(row["hex"])
        response_to = (row["api_key"], row["version"]) if row["type"] == "response" else None
        with pytest.raises(DecodeError, match=r"a frame without its size of 4 bytes \(at byte"):
            kafkawire.decode_frame(raw[4:], response_to=response_to)


def test_a_response_that_is_read_as_a_request_has_a_note() -> None:
    frame = bytes.fromhex("0000000a00000005000000000000")
    with pytest.raises(DecodeError) as raised:
        kafkawire.decode_frame(frame)
    assert "response_to=(API key, version)" in raised.value.__notes__[0]
    with pytest.raises(DecodeError) as raised:
        kafkawire.decode_frame(frame, response_to=(ApiKey.PRODUCE, 5))
    assert not hasattr(raised.value, "__notes__")
    with pytest.raises(UnknownApiKey) as unknown:
        kafkawire.decode_frame(bytes.fromhex("0000000a7fff0005000000000000"))
    assert unknown.value.__notes__


@pytest.mark.parametrize("data", [b"", b"\x00\x12", b"\x00\x12\x00\x04" * 9, b"GET / HTTP/1.1"])
def test_other_data_are_not_taken_for_a_frame_without_its_size(data: bytes) -> None:
    with pytest.raises(DecodeError) as raised:
        kafkawire.decode_frame(data)
    assert "without its size" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("FetchRequst", "'FetchRequest'"), ("Fetch", "'FetchRequest' or 'FetchResponse'")],
)
def test_an_unknown_message_has_a_similar_name(name: str, hint: str) -> None:
    for decode in (kafkawire.decode, kafkawire.Registry("kafkawire.messages").decode):
        with pytest.raises(UnknownApiKey, match=f"unknown message '{name}'; did you mean {hint}"):
            decode(name, 4, b"")
    with pytest.raises(UnknownApiKey, match=r"unknown message 'Zzzz'$"):
        kafkawire.decode("Zzzz", 4, b"")
