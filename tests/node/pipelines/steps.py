"""Clients as generators: they yield requests and pauses, and go on with the responses."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any, Final, NamedTuple, Protocol

from kafkawire.messages.find_coordinator_request import FindCoordinatorRequest
from kafkawire.metadata import MetadataImage, TopicIdPartition
from kafkawire.primitives import Message

from ..groups.exchanges import Exchanges, Observer

FIND_VERSION: Final = 4
RETRY_AFTER: Final = 0.2


class Pause(NamedTuple):
    """Nothing for a while."""

    seconds: float


class Call(NamedTuple):
    """A request. target: a broker; None for none, which is as if it did not respond.

    observer: called with the response when its broker sends it.
    """

    target: int | None
    version: int
    body: Message
    observer: Observer | None = None


Steps = Generator[Pause | Call, Any, Any]


class Cluster(Protocol):
    """What clients need of the simulation."""

    rng: random.Random
    now: float

    def image(self) -> MetadataImage | None: ...

    def at(self, when: float, action: Any) -> None: ...

    def connect(self, target: int, listener: str = "PLAINTEXT") -> Exchanges: ...

    def live(self) -> list[int]: ...


def play(cluster: Cluster, steps: Steps, value: Any = None) -> None:
    """Go on with a client until it waits for something."""
    try:
        step = steps.send(value)
    except StopIteration:
        return
    if isinstance(step, Pause) or step.target not in cluster.live():
        seconds = step.seconds if isinstance(step, Pause) else RETRY_AFTER
        cluster.at(cluster.now + seconds, lambda: play(cluster, steps))
        return
    assert step.target is not None
    exchanges = cluster.connect(step.target)

    def responded(body: Message | None) -> None:
        exchanges.close()
        play(cluster, steps, body)

    exchanges.send(step.version, step.body, responded, observer=step.observer)


def leader(cluster: Cluster, key: TopicIdPartition) -> int | None:
    """Return the leader of a partition, as a running broker knows it."""
    image = cluster.image()
    partition = None if image is None else image.partition(key)
    return None if partition is None else partition.leader


class Coordinator:
    """The coordinator of a key, found anew once it was forgotten."""

    def __init__(self, cluster: Cluster, key_type: int, key: str) -> None:
        self._cluster = cluster
        self._request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        self.node: int | None = None

    def forget(self) -> None:
        """Find it anew: it did not respond, or is not the coordinator any more."""
        self.node = None

    def find(self) -> Generator[Pause | Call, Any, int | None]:
        """Return the coordinator, or None for now."""
        if self.node is None:
            live = self._cluster.live()
            target = self._cluster.rng.choice(live) if live else None
            body = yield Call(target, FIND_VERSION, self._request)
            if body is not None and not body.coordinators[0].error_code:
                self.node = body.coordinators[0].node_id
        return self.node
