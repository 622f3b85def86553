"""Log records against Kafka's own bytes: every vector both ways, cut, unknown and broken ones."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkawire import to_json
from kafkawire.errors import UnknownApiKey, UnsupportedVersion
from kafkawire.messages import REGISTRY
from kafkawire.protocol.log_records import (
    LogPart,
    decode_control_record,
    decode_log_record,
    encode_log_message,
)
from kafkawire.protocol.log_types import (
    COORDINATED,
    FRAME_TYPE,
    FRAMED,
    KEY_TYPE,
    TOPICS,
    VERSIONED,
    InternalLog,
)
from kafkawire.protocol.versioned import decode_versioned, encode_versioned
from kafkawire.records import ControlType, control_key, end_txn_value
from tests import golden, vectors

ROWS: Final = list(golden.rows("log_records"))
IN_LOGS: Final = [row for row in ROWS if row["framing"] != "version-prefixed"]


def part_of(row: dict[str, Any], raw: bytes) -> LogPart | None:
    """Decode the bytes of a vector as the part of a record that it is."""
    name = row["message"]
    if row["framing"] == "coordinator-key":
        return decode_log_record(log_with(name, COORDINATED, "Key"), raw, None).key
    if row["framing"] == "coordinator-value":
        log = log_with(name, COORDINATED, "Value")
        return decode_log_record(log, key_before(name), raw).value
    return decode_log_record(log_with(name, FRAMED, ""), None, raw).value


def log_with(name: str, table: dict[InternalLog, dict[int, str]], suffix: str) -> InternalLog:
    return next(
        log
        for log, types in table.items()
        if name in {f"{stem}{suffix}" for stem in types.values()}
    )


def key_before(name: str) -> bytes:
    key = name.removesuffix("Value") + "Key"
    return encode_log_message(REGISTRY.load(key)(), REGISTRY.get(key).first)


@pytest.mark.parametrize("framing", ["metadata", "coordinator-key", "coordinator-value"])
def test_every_vector_is_read_and_written_again(framing: str) -> None:
    rows = [row for row in IN_LOGS if row["framing"] == framing]
    assert len(rows) > 70
    for row in rows:
        raw = bytes.fromhex(row["hex"])
        part = part_of(row, raw)
        assert part is not None, vectors.where(row)
        assert part.error is None, f"{part.error}: {vectors.where(row)}"
        assert part.name == row["message"], vectors.where(row)
        assert part.message is not None
        assert vectors.same(part.message, vectors.instance(row)), vectors.where(row)
        assert part.message.deviations is None, vectors.where(row)
        if framing != "coordinator-key":
            assert part.version == row["version"]
        assert encode_log_message(vectors.instance(row), part.version or 0) == raw


def test_every_version_prefixed_vector_is_read_and_written_again() -> None:
    rows = [row for row in ROWS if row["framing"] == "version-prefixed"]
    assert len(rows) == 27
    for row in rows:
        raw = bytes.fromhex(row["hex"])
        version, message = decode_versioned(row["message"], raw)
        assert (version, message) == (row["version"], vectors.instance(row)), vectors.where(row)
        assert encode_versioned(message, version) == raw


def test_every_truncated_vector_has_an_error() -> None:
    cuts = 0
    with vectors.fast_alone():
        for row in IN_LOGS:
            raw = bytes.fromhex(row["hex"])
            for cut in range(len(raw)):
                part = part_of(row, raw[:cut])
                assert part is not None
                assert part.message is None, f"{cut}: {vectors.where(row)}"
                assert part.error, f"{cut}: {vectors.where(row)}"
                assert part.raw == raw[:cut]
                cuts += 1
    assert cuts > 15_000


def test_the_tables_hold_every_record_of_the_registry() -> None:
    by_type = {
        "coordinator-key": set(KEY_TYPE),
        "coordinator-value": {name for name in VERSIONED if name.endswith("Value")},
        "metadata": set(FRAME_TYPE),
    }
    for kind, names in by_type.items():
        infos = [info for info in REGISTRY if info.type == kind]
        early = {name for name in names if name.startswith("ShareGroupPartitionMetadata")}
        assert names - early == {info.name for info in infos}
        types = KEY_TYPE if kind == "coordinator-key" else FRAME_TYPE
        for info in infos:
            if kind != "coordinator-value":
                assert types[info.name] == info.api_key, info.name


def test_a_tombstone_is_its_key_alone() -> None:
    key = REGISTRY.load("OffsetCommitKey")(group="g", topic="t", partition=3)
    record = decode_log_record(InternalLog.OFFSETS, encode_log_message(key, 0), None)
    assert record.value is None
    assert record.key is not None
    assert record.key.to_json() == {
        "name": "OffsetCommitKey",
        "type": 1,
        "version": 0,
        "message": {"group": "g", "topic": "t", "partition": 3},
    }


@pytest.mark.parametrize(
    ("log", "name"),
    [
        (InternalLog.OFFSETS, "LegacyOffsetCommitKey"),
        (InternalLog.TRANSACTIONS, "TransactionLogKey"),
        (InternalLog.SHARE, "ShareSnapshotKey"),
    ],
)
def test_the_same_type_means_different_things_in_different_logs(
    log: InternalLog, name: str
) -> None:
    part = decode_log_record(log, bytes(2), None).key
    assert part is not None
    assert (part.type, part.name) == (0, name)


@pytest.mark.parametrize(
    ("log", "key", "value", "reason"),
    [
        (InternalLog.OFFSETS, b"\0\x63", b"\0\0", "the key is of no known type"),
        (InternalLog.OFFSETS, b"\0", b"\0\0", "the key is of no known type"),
        (InternalLog.OFFSETS, None, b"\0\0", "without a key, its type is not known"),
        (InternalLog.OFFSETS, b"\0\x01", b"\0\x09x", "OffsetCommitValue has versions 0-4, not 9"),
        (InternalLog.SHARE, b"\0\x02", b"\0\0", "the key is of no known type"),
        (InternalLog.METADATA, None, b"\x02\0\0", "frame version 2, not 1"),
        (InternalLog.METADATA, None, b"\x01\x7f\0", "no record of this log has type 127"),
        (InternalLog.METADATA, None, b"\x01\x02\x07", "TopicRecord has versions 0-0, not 7"),
        (InternalLog.METADATA, None, b"\xff" * 6, "a varint goes on after its fifth byte"),
        (InternalLog.REMOTE, None, b"\x01\x09\0", "no record of this log has type 9"),
    ],
)
def test_what_is_not_known_keeps_its_bytes_and_the_reason(
    log: InternalLog, key: bytes | None, value: bytes, reason: str
) -> None:
    part = decode_log_record(log, key, value).value
    assert part is not None
    assert (part.message, part.error, part.raw) == (None, reason, value)
    assert part.to_json()["hex"] == value.hex()


def test_a_key_where_there_is_none_is_kept() -> None:
    part = decode_log_record(InternalLog.METADATA, b"k", b"\x01\x14\0\0").key
    assert part is not None
    assert (part.raw, part.message) == (b"k", None)


def test_an_offset_in_an_error_counts_from_the_first_byte_of_the_value() -> None:
    part = decode_log_record(InternalLog.METADATA, None, b"\x01\x02\x00\x05ab").value
    assert part is not None
    assert part.error == "TopicRecord.name: 4 bytes wanted, 2 left (at byte 6)"


def test_quotas_are_read_in_their_former_layout_too() -> None:
    cls = REGISTRY.load("QuotaRecord")
    message = cls(key="producer_byte_rate", value=1024.0)
    raw = encode_log_message(message, 0)
    part = decode_log_record(InternalLog.METADATA, None, raw).value
    assert part is not None
    assert (part.name, part.message) == ("QuotaRecord", message)


def test_bytes_behind_a_body_are_kept_and_written_again() -> None:
    raw = b"\x01\x14\x00\x00more"
    part = decode_log_record(InternalLog.METADATA, None, raw).value
    assert part is not None
    assert part.message is not None
    assert part.to_json()["deviations"] == "4 trailing bytes"
    assert encode_log_message(part.message, 0) == raw


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_the_markers_of_transactions(kind: ControlType) -> None:
    record = decode_control_record(control_key(kind), end_txn_value(7))
    assert record.key is not None
    assert (record.key.name, record.key.type) == ("ControlRecordTypeSchema", int(kind))
    assert record.value is not None
    assert record.value.to_json() == {
        "name": "EndTxnMarker",
        "version": 0,
        "message": {"coordinatorEpoch": 7},
    }
    for part in record:
        assert part is not None
        assert part.message is not None
        assert encode_log_message(part.message, 0) == part.raw


@pytest.mark.parametrize("kind", list(ControlType)[2:])
def test_the_control_records_of_kraft(kind: ControlType) -> None:
    from kafkawire.records.control import MESSAGES

    info = REGISTRY.get(MESSAGES[kind])
    for version in range(info.first, info.last + 1):
        message = REGISTRY.load(info.name)(version=version)
        raw = encode_log_message(message, version)
        part = decode_control_record(control_key(kind), raw).value
        assert part is not None
        assert (part.name, part.version, part.message) == (info.name, version, message)


def test_a_newer_marker_is_read_as_the_newest_known() -> None:
    record = decode_control_record(control_key(1, 5) + b"new", end_txn_value(7, 3) + b"new")
    assert record.value is not None
    assert record.value.to_json()["message"] == {"coordinatorEpoch": 7}
    assert record.value.to_json()["deviations"] == "3 trailing bytes"


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"v"), (b"", b"v"), (b"\0\0\0", b"v"), (b"\0\0\0\x63", b"v"), (b"\0\0\0\1", b"\0\0\1")],
)
def test_a_broken_control_record_keeps_its_value(key: bytes | None, value: bytes) -> None:
    part = decode_control_record(key, value).value
    assert part is not None
    assert part.raw == value
    assert part.error


def test_only_messages_of_logs_can_be_encoded_as_such() -> None:
    with pytest.raises(UnknownApiKey):
        encode_log_message(REGISTRY.load("FetchRequest")(), 4)
    with pytest.raises(UnsupportedVersion):
        encode_log_message(REGISTRY.load("OffsetCommitValue")(), -1)


def test_members_subscriptions_stand_beside_their_bytes() -> None:
    cls = REGISTRY.load("GroupMetadataValue")
    from kafkawire.messages.group_metadata_value import MemberMetadata

    subscription = REGISTRY.load("ConsumerProtocolSubscription")(topics=["orders"])
    member = MemberMetadata(member_id="m", subscription=encode_versioned(subscription, 1))
    value = cls(protocol_type="consumer", protocol="range", members=[member])
    key = encode_log_message(REGISTRY.load("GroupMetadataKey")(group="g"), 0)
    part = decode_log_record(InternalLog.OFFSETS, key, encode_log_message(value, 3)).value
    assert part is not None
    shown = part.to_json()["message"]["members"][0]["subscriptionDecoded"]
    assert shown["value"]["topics"] == ["orders"]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(InternalLog),
    st.none()
    | st.binary(max_size=60)
    | st.integers(0, 23).map(lambda n: bytes([0, n, 0, 0, 0, 0])),
    st.none()
    | st.binary(max_size=60)
    | st.integers(0, 29).map(lambda n: bytes([1, n, 0, 0, 0, 0])),
)
def test_random_bytes_are_values(log: InternalLog, key: bytes | None, value: bytes | None) -> None:
    for record in (decode_log_record(log, key, value), decode_control_record(key, value)):
        for raw, part in zip((key, value), record, strict=True):
            if part is None:
                assert raw is None
                continue
            assert part.raw == raw
            assert (part.message is None) == (part.error is not None)
            json.dumps(part.to_json())
            if part.message is not None and part.version is not None:
                to_json(part.message, part.version)


def test_topics_name_all_logs() -> None:
    assert set(TOPICS.values()) == set(InternalLog)
