"""The end offsets of partitions, of this broker and of others: for the lag of share groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ...messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ...messages.list_offsets_response import ListOffsetsResponse
from ...metadata import TopicIdPartition
from ...primitives import Message
from ..machines import Machines
from ..metadata_cache import MetadataCache

VERSION: Final = 10
LATEST: Final = -1
CONSUMER: Final = -1
"""The replica id of a request that is not a follower's."""
Offsets = dict[TopicIdPartition, int]


@dataclass(slots=True)
class LookUp:
    """A look-up. left: responses that are not there yet."""

    done: Callable[[Offsets, float], None]
    offsets: Offsets = field(default_factory=dict)
    left: int = 1


class EndOffsets:
    """The look-ups of a broker."""

    def __init__(self, node_id: int, metadata: MetadataCache, machines: Machines) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._machines = machines
        self._sent: dict[int, LookUp] = {}
        """Token of a request -> what it is for."""

    def look_up(
        self,
        partitions: Iterable[TopicIdPartition],
        done: Callable[[Offsets, float], None],
        now: float,
    ) -> None:
        """Look up the high watermarks of partitions; `done` gets those that are known."""
        look_up = LookUp(done)
        elsewhere: dict[int, dict[str, list[int]]] = {}
        for key in partitions:
            topic = self._metadata.topics.by_id(key.topic_id)
            partition = None if topic is None else topic.partition(key.partition)
            replica = self._machines.replica(key)
            if replica is not None and replica.is_leader:
                look_up.offsets[key] = replica.log.high_watermark
            elif topic is not None and partition is not None:
                names = elsewhere.setdefault(partition.leader_id, {})
                names.setdefault(topic.name, []).append(key.partition)
        for leader, names in elsewhere.items():
            token = self._machines.send(leader, VERSION, _request(names))
            if token is not None:
                look_up.left += 1
                self._sent[token] = look_up
        self._finish(look_up, now)

    def arrived(self, token: int, body: Message | None, now: float) -> bool:
        """Handle a response; return whether it was for this."""
        look_up = self._sent.pop(token, None)
        if look_up is None:
            return False
        for topic in body.topics if isinstance(body, ListOffsetsResponse) else ():
            named = self._metadata.topics.get(topic.name)
            for each in topic.partitions if named is not None else ():
                if named is not None and not each.error_code:
                    key = TopicIdPartition(named.topic_id, each.partition_index)
                    look_up.offsets[key] = each.offset
        self._finish(look_up, now)
        return True

    def _finish(self, look_up: LookUp, now: float) -> None:
        look_up.left -= 1
        if not look_up.left:
            look_up.done(look_up.offsets, now)


def _request(names: dict[str, list[int]]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=LATEST)
                    for index in indexes
                ],
            )
            for name, indexes in names.items()
        ],
    )
