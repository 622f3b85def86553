"""Rules about brokers: elections, shutdowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicKey, topic_key
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode

from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold

METADATA: Final = ApiKey.METADATA
FETCH: Final = ApiKey.FETCH


class Leader(NamedTuple):
    """The leader of a partition, as a Metadata response states it; -1 for an unknown epoch."""

    broker_id: int
    epoch: int


class LeaderElections(Rule):
    """Partitions whose leader changed."""

    name = "leader-elections"
    description = (
        "Partitions changed their leader while the capture was taken, as Metadata responses state "
        "it, or errors of Produce and Fetch that name the new leader."
    )
    apis = frozenset({ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH})
    error_codes = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
    thresholds = (Threshold("partitions", 1, "partitions", "leaders of a healthy cluster stay"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._leaders: dict[tuple[object, int], Leader] = {}
        self._keys: dict[str, TopicKey] = {}
        self._brokers: Subjects[Occurrences] = Subjects(Occurrences)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare the leaders in a Metadata response with those before."""
        response = exchange.response
        if response is None or response.message is None or response.api_key != METADATA:
            return
        message: Any = response.message
        keys, leaders = self._keys, self._leaders
        for topic in message.topics or ():
            name = topic.name
            key = topic_key(name, TOPIC_ID.of(topic))
            if name and (name in keys or len(keys) < MAX_SUBJECTS):
                keys[name] = key
            for one in topic.partitions:
                place = key, one.partition_index
                if leaders.get(place) != (one.leader_id, one.leader_epoch):
                    self._compare(place, Leader(one.leader_id, one.leader_epoch), response)

    def error(self, exchange: Exchange, code: int) -> None:  # noqa: ARG002
        """Compare the leaders in an error of Produce or Fetch with those before (KIP-951)."""
        response = exchange.response
        if response is None or response.message is None:
            return
        message: Any = response.message
        is_fetch = response.api_key == FETCH
        for topic in message.responses:
            name = topic.topic if is_fetch else topic.name
            key = self._keys.get(name) or topic_key(name, TOPIC_ID.of(topic))
            for one in topic.partitions if is_fetch else topic.partition_responses:
                index = one.partition_index if is_fetch else one.index
                leader = Leader(one.current_leader.leader_id, one.current_leader.leader_epoch)
                self._compare((key, index), leader, response)

    def _compare(self, place: tuple[object, int], leader: Leader, response: Row) -> None:
        """Compare the leader of a partition with the one before."""
        if leader.broker_id < 0:
            return
        leaders = self._leaders
        before = leaders.get(place)
        if before is None:
            if len(leaders) < MAX_SUBJECTS:
                leaders[place] = leader
        elif leader.epoch < 0 or leader.epoch > before.epoch:  # else of an older broker
            leaders[place] = leader
            if leader.broker_id != before.broker_id:
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
                    terms=("api in (Metadata, Produce, Fetch)",),
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
