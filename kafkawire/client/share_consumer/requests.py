"""Builds the requests to the leaders of partitions.

An acknowledgement that renews a lock needs version 2 (KIP-1222), and is not sent in a
ShareFetch, which then would fetch nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...messages import share_acknowledge_request as acknowledge_request
from ...messages import share_fetch_request as fetch_request
from ...messages.share_acknowledge_request import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from ...messages.share_fetch_request import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from ...primitives import Message
from ..requests import Body, Varying
from .acknowledgements import AcknowledgementRange, Acknowledgements, SharePartition
from .configuration import AcquireMode, ShareConsumerConfig
from .sessions import SessionChange

LIMITS_VERSION: Final = 1
"""From this version of ShareFetch on, a request limits records, not the bytes of a partition."""
RENEW_VERSION: Final = 2
RECORD_LIMIT_VERSION: Final = 2
HIGHEST_VERSION: Final = 2

Ranges = Mapping[SharePartition, list[AcknowledgementRange]]


def by_partition(acknowledgements: Iterable[Acknowledgements]) -> Ranges:
    """Return the ranges of each partition, in ascending order."""
    ranges: dict[SharePartition, list[AcknowledgementRange]] = {}
    for each in acknowledgements:
        ranges.setdefault(each.partition, []).extend(each.ranges)
    return {partition: sorted(of_partition) for partition, of_partition in ranges.items()}


def share_fetch(
    config: ShareConsumerConfig,
    member_id: str,
    change: SessionChange,
    acknowledgements: Iterable[Acknowledgements],
    max_records: int,
) -> Body:
    """Build a ShareFetch. max_records: how many records to acquire."""
    ranges = by_partition(acknowledgements)

    def make(version: int) -> Message:
        limits = version >= LIMITS_VERSION
        return ShareFetchRequest(
            group_id=config.group_id,
            member_id=member_id,
            share_session_epoch=change.epoch,
            max_wait_ms=round(config.fetch_max_wait_s * 1000),
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            max_records=max_records if limits else 0,
            batch_size=max_records if limits else 0,
            share_acquire_mode=config.acquire_mode if version >= RECORD_LIMIT_VERSION else 0,
            topics=_fetch_topics(change, ranges, 0 if limits else config.fetch_max_bytes),
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=[each.partition for each in listed])
                for topic_id, listed in _by_topic(change.to_forget)
            ],
        )

    strict = config.acquire_mode is AcquireMode.RECORD_LIMIT
    return Varying(make, RECORD_LIMIT_VERSION if strict else 0, HIGHEST_VERSION)


def share_acknowledge(
    config: ShareConsumerConfig,
    member_id: str,
    epoch: int,
    acknowledgements: Iterable[Acknowledgements],
) -> Body:
    """Build a ShareAcknowledge. epoch: of the share session; -1 closes it."""
    sent = tuple(acknowledgements)
    ranges = by_partition(sent)
    renews = any(each.renews for each in sent)

    def make(version: int) -> Message:
        return ShareAcknowledgeRequest(
            group_id=config.group_id,
            member_id=member_id,
            share_session_epoch=epoch,
            is_renew_ack=renews and version >= RENEW_VERSION,
            topics=[
                AcknowledgeTopic(
                    topic_id=topic_id,
                    partitions=[
                        AcknowledgePartition(
                            partition_index=each.partition,
                            acknowledgement_batches=[
                                acknowledge_request.AcknowledgementBatch(
                                    first_offset=first, last_offset=last, acknowledge_types=[kind]
                                )
                                for first, last, kind in ranges[each]
                            ],
                        )
                        for each in listed
                    ],
                )
                for topic_id, listed in _by_topic(ranges)
            ],
        )

    return Varying(make, RENEW_VERSION if renews else 0, HIGHEST_VERSION)


def _fetch_topics(change: SessionChange, ranges: Ranges, max_bytes: int) -> list[FetchTopic]:
    """List the partitions to add to the session, and those with acknowledgements."""
    return [
        FetchTopic(
            topic_id=topic_id,
            partitions=[
                FetchPartition(
                    partition_index=each.partition,
                    partition_max_bytes=max_bytes,
                    acknowledgement_batches=[
                        fetch_request.AcknowledgementBatch(
                            first_offset=first, last_offset=last, acknowledge_types=[kind]
                        )
                        for first, last, kind in ranges.get(each, ())
                    ],
                )
                for each in listed
            ],
        )
        for topic_id, listed in _by_topic({*change.to_add, *ranges})
    ]


def _by_topic(
    partitions: Iterable[SharePartition],
) -> Iterator[tuple[bytes, list[SharePartition]]]:
    """Group partitions by topic id, both in ascending order."""
    topics: dict[bytes, list[SharePartition]] = {}
    for each in sorted(partitions):
        topics.setdefault(each.topic_id, []).append(each)
    yield from topics.items()
