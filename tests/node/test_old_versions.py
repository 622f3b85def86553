"""Old versions of Produce, Fetch and ListOffsets at a node, as a cluster in memory has them."""

from __future__ import annotations

import pytest

from kafkawire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkawire.messages.list_offsets_response import ListOffsetsResponse

from ..broker.handlers.test_fetch import test_limits_are_soft_from_version_3_on
from ..broker.log.test_log import (
    batch,
    produce,
    test_a_topic_may_want_its_own_codec,
    test_an_old_produce_has_one_batch_of_magic_2_or_messages_of_one_magic,
    test_every_format_is_read_by_every_version,
    test_special_times_have_their_versions,
    test_zstd_takes_version_7,
)
from .front_harness import NodeHarness

__all__ = [
    "test_a_topic_may_want_its_own_codec",
    "test_an_old_produce_has_one_batch_of_magic_2_or_messages_of_one_magic",
    "test_every_format_is_read_by_every_version",
    "test_limits_are_soft_from_version_3_on",
    "test_special_times_have_their_versions",
    "test_zstd_takes_version_7",
]


@pytest.fixture
def harness() -> NodeHarness:
    return NodeHarness(release="all", topics={"t": 1})


def test_old_style_offsets(harness: NodeHarness) -> None:
    client = harness.client()
    for _ in range(3):
        produce(client, batch(b"v"))
    for timestamp, expected in ((-1, [3]), (-2, [0]), (1 << 60, [0])):
        requested = ListOffsetsPartition(timestamp=timestamp, max_num_offsets=1)
        topic = ListOffsetsTopic(name="t", partitions=[requested])
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        response = client.exchange(request, 0, ListOffsetsResponse).topics[0].partitions[0]
        assert response.old_style_offsets == expected
