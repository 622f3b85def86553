"""What a lenient decode accepts, a lenient encode writes again; `deviations` has every difference.

`deviations` None means that a strict encode gives the same bytes; `deviations.is_lossless`
that a lenient one does; otherwise the bytes differ, and what is encoded holds the same values.
"""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

import kafkawire
from kafkawire import reference
from kafkawire.errors import DecodeError, InvalidLength
from kafkawire.messages import REGISTRY
from kafkawire.primitives import Deviations
from tests import vectors
from tests.fuzzing import mutate, replayable, seeds
from tests.vectors import NAMES, same, where

LONGEST: Final = 500
HEARTBEAT: Final = "HeartbeatRequest"
EPOCH: Final = "000001000000000101"
"""An ApiVersionsResponse up to the size of its first tagged field, finalized_features_epoch."""

SIZED_WRONG: Final = Deviations(wrong_sizes=1, trailing=b"\xff")


def check(name: str, version: int, data: bytes) -> Any:
    """Check the law for some bytes; None where they are refused."""
    scenario = f"{name} v{version} {data.hex()}"
    try:
        message = REGISTRY.load(name).decode(data, version, lenient=True)
    except DecodeError:
        return None
    deviations = message.deviations
    written = message.encode(version, lenient=True)
    again = REGISTRY.load(name).decode(written, version, lenient=True)
    assert same(again, message), scenario
    if deviations is None:
        assert message.encode(version) == data, scenario
    elif deviations.is_lossless:
        assert written == data, scenario
    assert deviations is None or str(deviations), scenario
    assert deviations == reference.parse(name, version, data, lenient=True).deviations, scenario
    assert written == reference.encode(name, version, message, lenient=True), scenario
    return message


@pytest.mark.parametrize("file", ["quirks", "negatives"])
def test_quirks_are_written_again_or_named(file: str) -> None:
    decoded = 0
    for name, rows in vectors.by_message(file).items():
        for row in rows:
            decoded += check(name, row["version"], bytes.fromhex(row["hex"])) is not None
    assert decoded >= 20


@pytest.mark.parametrize("name", NAMES)
def test_golden_vectors_are_not_bent(name: str) -> None:
    for row in vectors.by_message("messages").get(name, []):
        message = check(name, row["version"], bytes.fromhex(row["hex"]))
        assert message.deviations is None, where(row)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("name", NAMES)
def test_mutated_vectors_are_written_again_or_named(name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    with replayable(seed):
        for row in vectors.by_message("messages").get(name, [])[(len(name) + seed) % 3 :: 3]:
            raw = bytes.fromhex(row["hex"])
            if len(raw) <= LONGEST:
                check(name, row["version"], mutate(raw, rng))


def flexible_head(name: str, version: int) -> bytes:
    """Encode a default message without the tagged fields at its end, of which it has none."""
    default: bytes = REGISTRY.load(name)().encode(version)
    assert default[-1:] == b"\x00"
    return default[:-1]


BENT = [
    (HEARTBEAT, 4, "0267000000000100" + "8000", Deviations(long_varints=1)),
    (HEARTBEAT, 4, "0267000000000100" + "8080808010", Deviations(long_varints=1)),
    (HEARTBEAT, 4, "0267000000000100" + "01808080801000", Deviations(long_varints=1)),
    (HEARTBEAT, 4, "0267000000000100" + "0109818000" + "61", Deviations(long_varints=1)),
    (HEARTBEAT, 4, "0267000000000100" + "0209000800", Deviations(unordered_tags=1)),
    (HEARTBEAT, 4, "0267000000000100" + "02090009" + "0161", Deviations(unordered_tags=1)),
    (HEARTBEAT, 4, "0267000000000100" + "01ffffffff0700", Deviations(invalid_tags=1)),
    (
        HEARTBEAT,
        4,
        "0267000000000100" + "01ffffffff0f00",
        Deviations(invalid_tags=1, unordered_tags=1, long_varints=1),
    ),
    (HEARTBEAT, 3, "0001670000000000" + "00fffe", Deviations(odd_values=1)),
    ("ApiVersionsResponse", 3, EPOCH + "08" + "ff" * 8, Deviations(default_tags=1)),
    ("ApiVersionsResponse", 3, EPOCH + "09" + "00" * 8 + "ff", SIZED_WRONG),
    ("MetadataRequest", 4, "ffffffff02", Deviations(odd_values=1)),
    ("DescribeTopicPartitionsRequest", 0, "01000007d0fe00", Deviations(odd_values=1)),
]


def test_each_deviation_is_counted_under_its_name() -> None:
    met: set[str] = set()
    for name, version, text, wanted in BENT:
        message = check(name, version, bytes.fromhex(text))
        assert message.deviations == wanted, text
        met |= {key for key, value in wanted._asdict().items() if value}
    assert met >= set(Deviations._fields) - {"invalid_text", "misplaced_tags"}


NEGATIVE_COUNTS: Final = ("8080808008", "ffffffff0f", "feffffff0f")


@pytest.mark.parametrize("name", NAMES)
def test_a_negative_number_of_tagged_fields_is_an_error_unless_lenient(name: str) -> None:
    """Kafka refuses it since 4.4, and took it for 0 before."""
    info = REGISTRY.get(name)
    for version in range(info.first, info.last + 1):
        if not info.is_flexible(version):
            continue
        head = flexible_head(name, version)
        for count in map(bytes.fromhex, NEGATIVE_COUNTS):
            for decode in (kafkawire.decode, reference.decode):
                with pytest.raises(InvalidLength, match="a negative number of tagged") as caught:
                    decode(name, version, head + count)
                assert (caught.value.path, caught.value.offset) == (name, len(head))
            message = check(name, version, head + count)
            assert message.deviations == Deviations(long_varints=1)
            assert message.encode(version, lenient=True) == head + b"\0"


def test_lengths_from_2_to_the_31_on_are_null_as_in_kafka() -> None:
    """Kafka 4.4 compares them with 0; `verify` names them."""
    for length in ("feffffff0f", "8180808008", "ffffffff0f"):
        data = bytes.fromhex(length + "000000")
        assert kafkawire.decode("MetadataRequest", 12, data).topics is None  # type: ignore[attr-defined]
        assert check("MetadataRequest", 12, data).deviations == Deviations(long_varints=1)
        assert not kafkawire.verify("MetadataRequest", 12, data)


def test_tags_given_twice_are_encoded_leniently() -> None:
    data = bytes.fromhex("0267000000000100" + "02090161090162")
    message = kafkawire.decode(HEARTBEAT, 4, data, lenient=True)
    assert message.unknown_tags == [(9, b"a"), (9, b"b")]  # type: ignore[attr-defined]
    assert kafkawire.decode(HEARTBEAT, 4, message.encode(4, lenient=True)) == message
    with pytest.raises(kafkawire.EncodeError, match="tag 9 is there twice"):
        message.encode(4)


MARKERS = [
    ("00", None, None),
    ("01", 7, None),
    ("8100", 7, Deviations(long_varints=1)),
    ("8101", 7, Deviations(odd_values=1)),
    ("ffffffff0f", None, Deviations(long_varints=1)),
]


@pytest.mark.parametrize(("marker", "present", "deviations"), MARKERS, ids=[m[0] for m in MARKERS])
def test_a_nullable_struct_in_a_tagged_field_has_a_varint_in_front(
    marker: str, present: int | None, deviations: Deviations | None
) -> None:
    """ConsumerGroupMemberMetadataValue of kafka-group-coordinator reads it with
    readUnsignedVarint, and takes 0 and below as null.
    """
    name = "ConsumerGroupMemberMetadataValue"
    value = bytes.fromhex(marker) + (b"\x00\x00\x00\x07\x01\x00" if present else b"")
    data = flexible_head(name, 0) + b"\x01\x00" + bytes([len(value)]) + value
    message = check(name, 0, data)
    held = message.classic_member_metadata
    assert (held.session_timeout_ms if held else None) == (7 if present else None)
    assert message.deviations == deviations
