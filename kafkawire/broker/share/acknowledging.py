"""Acknowledges the records of a request, of ShareAcknowledge or ShareFetch (KIP-932, KIP-1222).

Invariant: a partition is acknowledged as a whole or not at all; the error of one is not that of
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from ...metadata import TopicIdPartition
from ...protocol import ErrorCode
from ..share_coordinator.state import ShareKey
from .partition import AcknowledgementBatch
from .partitions import SharePartitions
from .sessions import Member
from .states import AcknowledgeType

E = ErrorCode
Errors = dict[TopicIdPartition, ErrorCode]
Done = Callable[[Errors, float], None]
"""Called with the error of each partition, NONE for those that are acknowledged."""
TYPES: Final[Mapping[int, AcknowledgeType]] = {each.value: each for each in AcknowledgeType}


class RequestedBatch(Protocol):
    """A batch of acknowledgements in a request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


def checked(
    batches: Iterable[RequestedBatch], may_renew: bool
) -> Sequence[AcknowledgementBatch] | ErrorCode:
    """Return the batches of a partition, INVALID_REQUEST if they are not valid.

    may_renew: whether the request says that it renews locks.
    """
    valid: list[AcknowledgementBatch] = []
    for batch in batches:
        types = [TYPES.get(each) for each in batch.acknowledge_types]
        size = batch.last_offset - batch.first_offset + 1
        after = valid[-1].last if valid else 0
        if size < 1 or batch.first_offset < after or len(types) not in (1, size):
            return E.INVALID_REQUEST
        if None in types or (AcknowledgeType.RENEW in types and not may_renew):
            return E.INVALID_REQUEST
        kinds = tuple(each for each in types if each is not None)
        valid.append(AcknowledgementBatch(batch.first_offset, batch.last_offset, kinds))
    return valid


def acknowledge(
    partitions: SharePartitions,
    member: Member,
    acknowledgements: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch] | ErrorCode],
    done: Done,
    now: float,
) -> None:
    """Acknowledge records; `done` is called when all is stored."""
    errors: Errors = {}
    if not acknowledgements:
        done(errors, now)

    def collect(key: TopicIdPartition) -> Callable[[ErrorCode, float], None]:
        def one(error: ErrorCode, now: float) -> None:
            errors[key] = error
            if len(errors) == len(acknowledgements):
                done({each: errors[each] for each in acknowledgements}, now)

        return one

    for key, batches in acknowledgements.items():
        then = collect(key)
        if isinstance(batches, ErrorCode):
            then(batches, now)
            continue
        of = ShareKey(member.group_id, key.topic_id, key.partition)
        share = partitions.loaded(of)
        if isinstance(share, ErrorCode):
            then(share, now)
            continue
        write = share.acknowledge(member.member_id, batches, now)
        if isinstance(write, ErrorCode):
            then(write, now)
        else:
            partitions.store(of, share, write, then, now)
