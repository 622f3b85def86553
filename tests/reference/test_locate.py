"""Errors name the field and the byte, and what it may cost to find them."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

import kafkawire
from kafkawire import Limits
from kafkawire.errors import (
    DecodeError,
    EncodeError,
    FieldNotInVersion,
    InvalidLength,
    InvalidTag,
    InvalidText,
    InvalidValue,
    InvalidVarint,
    LimitExceeded,
    NullNotAllowed,
    OutOfRange,
    TrailingBytes,
    Truncated,
    UnexpectedNull,
)
from kafkawire.messages import REGISTRY
from kafkawire.primitives import Writer
from kafkawire.primitives.limits import NO_LIMITS
from kafkawire.protocol.locate import MAX_ELEMENTS
from kafkawire.protocol.locate.locators import LOCATORS
from kafkawire.reference import parse
from tests import vectors
from tests.fuzzing import mutate
from tests.new_process import in_new_process
from tests.vectors import NAMES, fast_alone

PACKAGE = "kafkawire.messages.any_module"
EPOCH = ".finalized_features_epoch"
ENTRY = ".api_keys[0]"
TOPICS = "DescribeTopicPartitionsRequest"

DAMAGED = [
    ("ApiVersionsRequest", 3, "026102", Truncated, ".client_software_version", 3),
    ("ApiVersionsRequest", 3, "0261026201640a01", Truncated, ".unknown_tags[0]", 8),
    ("ApiVersionsRequest", 3, "00026200", UnexpectedNull, ".client_software_name", 0),
    ("ApiVersionsRequest", 3, "0361c3026200", InvalidText, ".client_software_name", 2),
    ("ApiVersionsRequest", 3, "808080808001", InvalidVarint, ".client_software_name", 4),
    ("ApiVersionsRequest", 3, "828002", InvalidLength, ".client_software_name", 0),
    ("ApiVersionsRequest", 3, "026102620000", TrailingBytes, "", 5),
    ("ApiVersionsRequest", 3, "026102628080808008", InvalidLength, "", 4),
    ("ApiVersionsResponse", 3, "00000100000000ffffffff0f", InvalidLength, "", 7),
    ("ApiVersionsResponse", 3, "0000" + "02" + "00" * 6 + "8080808008", InvalidLength, ENTRY, 9),
    ("ApiVersionsResponse", 3, "00000100000000010109" + "00" * 9, InvalidTag, EPOCH, 9),
    ("MetadataRequest", 1, "7fffffff", InvalidLength, ".topics", 0),
    ("MetadataRequest", 0, "000000020001610005", Truncated, ".topics[1].name", 9),
    (TOPICS, 0, "01000007d00102740000", Truncated, ".cursor.partition_index", 10),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "version", "data", "kind", "path", "offset"),
    DAMAGED,
    ids=[f"{kind.__name__}{path}" for _, _, _, kind, path, _ in DAMAGED],
)
def test_a_decode_error_names_field_and_byte(
    name: str, version: int, data: str, kind: type[DecodeError], path: str, offset: int
) -> None:
    with pytest.raises(DecodeError) as caught:
        kafkawire.decode(name, version, bytes.fromhex(data))
    error = caught.value
    assert (type(error), error.path, error.offset) == (kind, f"{name}{path}", offset)
    with fast_alone(), pytest.raises(kind):
        kafkawire.decode(name, version, bytes.fromhex(data))


def fetch(**partition: Any) -> Any:
    module = sys.modules[REGISTRY.load("FetchRequest").__module__]
    inner = module.FetchPartition(**partition)
    topics = [module.FetchTopic(), module.FetchTopic(topic="t", partitions=[inner])]
    return module.FetchRequest(topics=topics)


PARTITION = ".topics[1].partitions[0]"

UNWRITABLE = [
    (fetch(fetch_offset=2**63), 12, OutOfRange, f"{PARTITION}.fetch_offset"),
    (fetch(replica_directory_id=b"x"), 17, InvalidValue, f"{PARTITION}.replica_directory_id"),
    (fetch(unknown_tags=[(9, b"")]), 11, FieldNotInVersion, f"{PARTITION}.unknown_tags"),
    (REGISTRY.load("FetchRequest")(replica_id=3), 15, FieldNotInVersion, ".replica_id"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "version", "kind", "path"), UNWRITABLE, ids=[p for *_, p in UNWRITABLE]
)
def test_an_encode_error_names_the_field(
    message: Any, version: int, kind: type[EncodeError], path: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        message.encode(version)
    assert (type(caught.value), caught.value.path) == (kind, f"FetchRequest{path}")
    assert caught.value.offset is None


def test_a_null_struct_is_named() -> None:
    message = kafkawire.from_json("MetadataRequest", 4, {"topics": None})
    with pytest.raises(NullNotAllowed, match=r"^MetadataRequest\.topics: is None"):
        message.encode(0)


def test_a_limit_names_the_array_that_passes_it() -> None:
    data = bytes.fromhex("00000003" + "000161" * 3)
    with pytest.raises(LimitExceeded) as caught:
        kafkawire.decode("MetadataRequest", 0, data, limits=Limits(max_elements=2))
    assert (caught.value.path, caught.value.offset) == ("MetadataRequest.topics", 0)


def test_a_search_is_given_up_when_it_costs_too_much() -> None:
    count = MAX_ELEMENTS + 2
    data = count.to_bytes(4, "big") + b"\x00\x00" * (count - 1) + b"\x00"
    with pytest.raises(Truncated) as caught:
        kafkawire.decode("MetadataRequest", 0, data, limits=Limits(bytes_per_object=0))
    assert (caught.value.path, caught.value.offset) == ("MetadataRequest", len(data))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_found_is_what_the_reference_finds(name: str) -> None:
    rng = random.Random(name)
    for row in vectors.by_message("messages").get(name, [])[::3]:
        raw, version = bytes.fromhex(row["hex"]), row["version"]
        if len(raw) > 500:
            continue
        for _ in range(6):
            changed, lenient = mutate(raw, rng), rng.random() < 0.5
            wanted = parse(name, version, changed, lenient=lenient).error
            if isinstance(wanted, TrailingBytes):
                continue
            found = LOCATORS.decode(PACKAGE, name, changed, version, lenient, Limits())
            assert (type(found), str(found)) == (type(wanted), str(wanted)), changed.hex()


HOSTILE = {
    "empty names": ("DescribeUserScramCredentialsRequest", 0, b"\x01\x00"),
    "empty topics": ("OffsetCommitRequest", 8, b"\x01\x01\x00"),
    "topics of one name": ("MetadataRequest", 9, b"\x02\xff\x00"),
}
"""Bytes of an array's element, that take more memory as objects than on the wire."""


def hostile(name: str, version: int, element: bytes, size: int) -> bytes:
    """Write a message of about `size` bytes that is one array, and is cut inside its last field."""
    cls = REGISTRY.load(name)
    count = size // len(element)
    writer = Writer()
    writer.write_length(count, True)
    empty = cls().encode(version)
    at = empty.rindex(b"\x01\x00") if name == "OffsetCommitRequest" else empty.index(b"\x01")
    head: bytes = empty[:at]
    return head + writer.getvalue() + element * count


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_memory_of_a_search_does_not_grow_with_the_message(kind: str) -> None:
    peaks = in_new_process(peak_of_search, [(kind, 10_000), (kind, 100_000)])
    assert max(peaks) < 50_000, peaks


def peak_of_search(kind: str, size: int) -> int:
    """Return the bytes in use at the peak of a search in a message of about `size` bytes."""
    name, version, element = HOSTILE[kind]
    data = hostile(name, version, element, size)
    LOCATORS.decode(PACKAGE, name, data[:20], version, False, Limits())  # plans are made
    tracemalloc.start()
    try:
        found = LOCATORS.decode(PACKAGE, name, data, version, False, NO_LIMITS)
        assert found is None or found.path.startswith(name)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_messages_of_other_packages_are_left_alone() -> None:
    message = REGISTRY.load("HeartbeatRequest")(generation_id=2**40)
    failure = OutOfRange("2**40")
    assert LOCATORS.encode(failure, "mine.messages.heartbeat_request", message, 4, False) is None
    ours = "kafkawire.messages.heartbeat_request"
    assert LOCATORS.encode(failure, ours, message, 4, False) is not None
    for package in ("mine.messages", "kafkawire.messages_of_mine"):
        found = LOCATORS.decode(package, "HeartbeatRequest", b"", 4, False, Limits())
        assert found is None, package


FIRST_FAILURES = {
    "kafkawire.decode": """
import sys, kafkawire
message = kafkawire.decode("ApiVersionsRequest", 3, bytes.fromhex("0261026200"))
message.encode(3)
before = set(sys.modules)
try:
    kafkawire.decode("ApiVersionsRequest", 3, b"")
except kafkawire.DecodeError as error:
    found = str(error)
""",
    "a class alone": """
import sys
from kafkawire.messages.api_versions_request import ApiVersionsRequest
before = set(sys.modules)
try:
    ApiVersionsRequest.decode(b"", 3)
except ValueError as error:
    found = str(error)
""",
}
IMPORTED = {
    "kafkawire.messages.request_header",
    "kafkawire.messages.response_header",
    "kafkawire.protocol",
    "kafkawire.protocol.fields",
    "kafkawire.protocol.locate",
    "kafkawire.protocol.locate.plan",
    "kafkawire.protocol.locate.walk",
    "kafkawire.protocol.packages",
}
"""What the search for the field needs, beside messages: it takes a few milliseconds."""


@pytest.mark.parametrize("program", FIRST_FAILURES.values(), ids=FIRST_FAILURES)
def test_the_first_failure_imports_little(program: str) -> None:
    ends = "ApiVersionsRequest.client_software_name: 1 byte wanted, 0 left (at byte 0)"
    checked = f"""
assert found == {ends!r}, found
more = set(sys.modules) - before
assert more <= {IMPORTED}, more
assert not {{name.partition(".")[0] for name in sys.modules}} & {{"construct", "kafkawire_codegen"}}
assert not {{"re", "json", "kafkawire.reference"}} & more
"""
    subprocess.run([sys.executable, "-c", program + checked], check=True)
