"""What a message may cost: objects in proportion to its bytes, refused before they are made."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Final

import pytest

import kafkawire
from kafkawire import Limits
from kafkawire.errors import LimitExceeded, WireError
from kafkawire.messages import REGISTRY
from kafkawire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkawire.primitives import Writer
from kafkawire.primitives.limits import FREE_OBJECTS, elements_within

USERS: Final = "DescribeUserScramCredentialsRequest"
COMMIT: Final = "OffsetCommitRequest"
COMMITTED: Final = "OffsetCommitResponse"

MAX_RATIO: Final = 120
"""Bytes of memory for a byte of a message: an interpreted struct on a compiled base takes 410, and
the densest message that is accepted has one in 4 bytes.
"""


def count(n: int) -> bytes:
    writer = Writer()
    writer.write_length(n, True)
    return writer.getvalue()


def users(n: int, element: bytes) -> bytes:
    return count(n) + element * n + b"\x00"


def commit(n: int) -> bytes:
    """Write an OffsetCommitRequest of `n` topics without names and partitions."""
    empty: bytes = REGISTRY.load(COMMIT)().encode(8)
    return empty.removesuffix(b"\x01\x00") + count(n) + b"\x01\x01\x00" * n + b"\x00"


def peak(name: str, version: int, data: bytes) -> tuple[int, WireError | None]:
    """Decode at default limits: the memory it took at most, and the refusal, if any."""
    tracemalloc.start()
    try:
        kafkawire.decode(name, version, data)
        return tracemalloc.get_traced_memory()[1], None
    except WireError as error:
        return tracemalloc.get_traced_memory()[1], error
    finally:
        tracemalloc.stop()


HOSTILE: Final[dict[str, tuple[str, int, Callable[[int], bytes], str]]] = {
    "empty names": (USERS, 0, lambda size: users(size // 2, b"\x01\x00"), "users"),
    "empty topics": (COMMIT, 8, lambda size: commit(size // 3), "topics"),
    "tagged fields": (
        USERS,
        0,
        lambda size: b"\x01" + count(size // 8 * 3 - 1) + b"\x05\x00" * (size // 8 * 3),
        "",  # the search for the field is given up
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_empty_objects_are_refused_before_they_fill_the_memory(kind: str) -> None:
    name, version, write, field = HOSTILE[kind]
    kafkawire.decode(name, version, write(1000))
    size = 800_000
    took, error = peak(name, version, write(size))
    assert isinstance(error, LimitExceeded)
    assert error.path.startswith(f"{name}.{field}" if field else name), error
    assert "bytes_per_object" in error.reason
    assert took < FREE_OBJECTS * 200 + size * MAX_RATIO, took


@pytest.mark.parametrize("size", [800_000])
def test_the_densest_message_that_is_accepted(size: int) -> None:
    took, error = peak(USERS, 0, users(size // 4, b"\x03ab\x00"))
    assert error is None
    assert took < size * MAX_RATIO, took


def test_a_limit_on_objects_can_be_changed() -> None:
    data = users(500_000, b"\x01\x00")
    for each in (0, 2):
        read = kafkawire.decode(USERS, 0, data, limits=Limits(bytes_per_object=each))
        assert len(read.users) == 500_000  # type: ignore[attr-defined]
    sparse = users(150_000, b"\x03ab\x00")
    kafkawire.decode(USERS, 0, sparse)
    with pytest.raises(LimitExceeded):
        kafkawire.decode(USERS, 0, sparse, limits=Limits(bytes_per_object=100))


def test_a_large_cluster_is_within_the_limits() -> None:
    partition = MetadataResponsePartition(
        replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3], offline_replicas=[]
    )
    topic = MetadataResponseTopic(name="orders", partitions=[partition] * 100)
    for version in (1, 9, 12):
        data = MetadataResponse(topics=[topic] * 1000).encode(version)
        read = MetadataResponse.decode(data, version)
        assert sum(len(each.partitions) for each in read.topics) == 100_000


@pytest.mark.parametrize("version", [7, 8])
def test_a_dense_response_is_within_the_limits(version: int) -> None:
    cls = REGISTRY.load(COMMITTED)
    module = __import__(cls.__module__, fromlist=["_"])
    partition = module.OffsetCommitResponsePartition()
    topic = module.OffsetCommitResponseTopic(name="t", partitions=[partition] * 400_000)
    data = cls(topics=[topic]).encode(version)
    assert len(cls.decode(data, version).topics[0].partitions) == 400_000


def test_what_is_read_without_objects_stays_within_the_same_limits() -> None:
    assert elements_within(Limits(), 100_000) == 10_000_000
    assert elements_within(Limits(), 4_000_000) == FREE_OBJECTS + 1_000_000
    assert elements_within(Limits(bytes_per_object=0), 4_000_000) == 10_000_000
    assert elements_within(Limits(max_elements=5), 4_000_000) == 5
