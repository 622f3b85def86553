"""What share groups need of the share coordinators: states to set up, to delete, to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ..consumer_groups.members import TopicPartition

Done = Callable[[Mapping[TopicPartition, Any], float], None]
"""Called with the result of each partition, and the time."""
Then = Callable[[Any, float], None]
"""Called with the result of a share partition, which has an error code, and the time."""


class Persister(Protocol):
    """The way to the share coordinators; `then` is called once, perhaps at once."""

    def initialize(
        self,
        group_id: str,
        partition: tuple[bytes, int],
        state_epoch: int,
        start_offset: int,
        then: Then,
        now: float,
        /,
    ) -> None:
        """Set up the state of a share partition. start_offset: -1 leaves it open."""

    def delete(
        self, group_id: str, partition: tuple[bytes, int], then: Then, now: float, /
    ) -> None:
        """Delete the state of a share partition."""

    def summarize(
        self, group_id: str, partition: tuple[bytes, int], then: Then, now: float, /
    ) -> None:
        """Read the start offset of a share partition."""


def for_each(
    partitions: Iterable[TopicPartition],
    send: Callable[[TopicPartition, Then], None],
    done: Done,
    now: float,
) -> None:
    """Send a request for each partition, once for each; `done` gets the results of all."""
    wanted, results = [*dict.fromkeys(partitions)], dict[TopicPartition, Any]()
    if not wanted:
        done(results, now)

    def collect(partition: TopicPartition) -> Then:
        def one(result: Any, now: float) -> None:
            results[partition] = result
            if len(results) == len(wanted):
                done(results, now)

        return one

    for each in wanted:
        send(each, collect(each))
