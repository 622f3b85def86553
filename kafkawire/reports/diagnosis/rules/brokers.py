"""Rules about brokers: slow ones, elections, shutdowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey

from ...quantiles import Quantiles
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold

PROMPT: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.HEARTBEAT,
        ApiKey.API_VERSIONS,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
    }
)
"""APIs whose responses do not wait on purpose."""


class Latencies:
    """The latencies of an API at a broker."""

    __slots__ = ("latency", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.latency = Quantiles()


class SlowBroker(Rule):
    """A broker that is slower than the others."""

    name = "slow-broker"
    description = (
        "A broker takes much longer than its peers for the same API. Requests that wait on purpose "
        "(Fetch, JoinGroup, SyncGroup) are not compared."
    )
    apis = PROMPT
    thresholds = (
        Threshold("requests", 100, "requests", "per broker; the median of fewer is not reliable"),
        Threshold("times", 4, "times", "the load of brokers differs, but rarely by so much"),
        Threshold("milliseconds", 20, "ms", "a smaller difference rarely matters"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._brokers: Subjects[Latencies] = Subjects(Latencies)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Add the latency of an exchange."""
        response = exchange.response
        if response is None:
            return
        latency = since(response.request_time_ns, response.time_ns)
        if latency is None:
            return
        broker = self._brokers.of_key(
            (exchange.broker, response.api_key),
            lambda: Subject(broker=exchange.broker, api=response.api_name),
        )
        broker.latency.add(latency)
        broker.seen.add(response, time_ns=latency)

    def findings(self) -> Iterator[Finding]:
        """Return the brokers whose median is far above that of each other broker together."""
        by_api: dict[str | None, dict[Subject, Latencies]] = {}
        for subject, broker in self._brokers:
            if broker.seen.count >= self.limits["requests"]:
                by_api.setdefault(subject.api, {})[subject] = broker
        for brokers in by_api.values():
            for subject, broker in brokers.items():
                peers = Quantiles()
                for other in brokers.values():
                    if other is not broker:
                        peers.merge(other.latency)
                usual, own = peers.at(0.5), broker.latency.at(0.5)
                if usual is None or own is None or own - usual < self.limits["milliseconds"] * 1e6:
                    continue
                if own < self.limits["times"] * usual:
                    continue
                yield Finding(
                    self.name,
                    Severity.WARNING,
                    subject,
                    f"median {own / 1e6:,.1f} ms; its peers take {usual / 1e6:,.1f} ms",
                    broker.seen,
                    "The broker is overloaded, has slow disks or followers, or is far away.",
                    "Compare its load, disks and request queue with its peers; move leaders away.",
                    Confidence.MEDIUM,
                )


class Leader(NamedTuple):
    """The leader of a partition, as a Metadata response states it; -1 for an unknown epoch."""

    broker_id: int
    epoch: int


class LeaderElections(Rule):
    """Partitions whose leader changed."""

    name = "leader-elections"
    description = "Partitions changed their leader while the capture was taken."
    apis = frozenset({ApiKey.METADATA})
    thresholds = (Threshold("partitions", 1, "partitions", "leaders of a healthy cluster stay"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._leaders: dict[tuple[object, int], Leader] = {}
        self._brokers: Subjects[Occurrences] = Subjects(Occurrences)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare the leaders in a Metadata response with those before."""
        response = exchange.response
        if response is None or response.message is None:
            return
        message: Any = response.message
        names, leaders = self.scene.names, self._leaders
        for topic in message.topics or ():
            key = names.topic(topic.name, TOPIC_ID.of(topic)).key
            for partition in topic.partitions:
                broker_id, epoch = partition.leader_id, partition.leader_epoch
                if broker_id < 0:
                    continue
                place = key, partition.partition_index
                before = leaders.get(place)
                if before is None:
                    if len(leaders) < MAX_SUBJECTS:
                        leaders[place] = Leader(broker_id, epoch)
                elif epoch < 0 or epoch > before.epoch:  # else of an older broker
                    leaders[place] = Leader(broker_id, epoch)
                    if broker_id != before.broker_id:
                        self._lost(before.broker_id).add(response)

    def _lost(self, broker_id: int) -> Occurrences:
        return self._brokers.of_key(broker_id, lambda: Subject(broker_id=broker_id))

    def findings(self) -> Iterator[Finding]:
        """Return the brokers that lost leaders."""
        for subject, seen in self._brokers:
            if seen.count >= self.limits["partitions"]:
                yield Finding(
                    self.name,
                    Severity.NOTICE,
                    subject,
                    f"{plural(seen.count, 'partition')} got another leader",
                    seen,
                    "The broker was restarted, failed, or lost its session; or leaders were moved.",
                    "Compare with restarts of the broker and with auto.leader.rebalance.enable.",
                    Confidence.HIGH,
                    (Setting("auto.leader.rebalance.enable"),),
                    terms=("api == Metadata",),
                )


class ControlledShutdowns(Rule):
    """Brokers that shut down."""

    name = "controlled-shutdowns"
    description = "A broker requests a controlled shutdown."
    apis = frozenset({ApiKey.CONTROLLED_SHUTDOWN, ApiKey.BROKER_HEARTBEAT})
    thresholds = (Threshold("requests", 1, "requests", "each one is a shutdown, or a part of one"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._brokers: Subjects[Occurrences] = Subjects(Occurrences)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note a request to shut down."""
        request = exchange.request
        if request is None or request.message is None:
            return
        message: Any = request.message
        if request.api_key == ApiKey.CONTROLLED_SHUTDOWN or message.want_shut_down:
            self._brokers.of(Subject(broker_id=message.broker_id)).add(request)

    def findings(self) -> Iterator[Finding]:
        """Return the brokers that shut down."""
        for subject, seen in self._brokers:
            if seen.count >= self.limits["requests"]:
                yield Finding(
                    self.name,
                    Severity.NOTICE,
                    subject,
                    f"shut down ({plural(seen.count, 'request')})",
                    seen,
                    "An operator or an orchestrator stopped the broker.",
                    "Nothing, if it was planned; clients see elections at the same time.",
                    Confidence.HIGH,
                    terms=(SHUTDOWN,),
                )


SHUTDOWN: Final = "api in (ControlledShutdown, BrokerHeartbeat)"
