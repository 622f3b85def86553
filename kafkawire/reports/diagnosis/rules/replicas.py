"""Rules about replicas as clients see them: out of the ISR, truncated, with old leader epochs."""

# over 300 lines: what clients see of replicas, by the same leader epochs and high watermarks

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import ZERO, TopicKey
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.capture.tables.extraction.partition_fields import TOPIC_ID
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey

from ..fetched import Fetched, PartitionAt
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold

SETTLED_NS: Final = 10**9
"""Responses of several connections are in the capture in another order for less than this."""


class Missing:
    """The partitions of a topic of which replicas are not in sync.

    partitions: at one time, at most. fewest: in-sync replicas, and all.
    """

    __slots__ = ("fewest", "partitions", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.partitions = 0
        self.fewest: tuple[int, int] | None = None


class UnderReplicated(Rule):
    """Partitions with too few replicas in sync."""

    name = "under-replicated"
    description = (
        "Metadata responses have partitions of which not all replicas are in sync: the failure of "
        "another broker may stop producers, or lose records."
    )
    apis = frozenset({ApiKey.METADATA})
    thresholds = (
        Threshold("responses", 1, "responses", "replicas of a healthy cluster are in sync"),
        Threshold("warning", 30, "s", "a broker that restarts is back within less"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._topics: Subjects[Missing] = Subjects(Missing)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare the replicas in a Metadata response with those in sync."""
        response = exchange.response
        if response is None or response.message is None:
            return
        message: Any = response.message
        for topic in message.topics or ():
            short = [one for one in topic.partitions if len(one.isr_nodes) < len(one.replica_nodes)]
            if short:
                key = self.scene.names.topic(topic.name, TOPIC_ID.of(topic)).key
                missing = self._topics.of(Subject(topic=key))
                missing.seen.add(response)
                missing.partitions = max(missing.partitions, len(short))
                fewest = min((len(one.isr_nodes), len(one.replica_nodes)) for one in short)
                missing.fewest = min(missing.fewest or fewest, fewest)

    def findings(self) -> Iterator[Finding]:
        """Return the topics with such partitions."""
        for subject, missing in self._topics:
            if missing.seen.count < self.limits["responses"] or missing.fewest is None:
                continue
            lasting = missing.seen.span_seconds >= self.limits["warning"]
            in_sync, replicas = missing.fewest
            yield Finding(
                self.name,
                Severity.WARNING if lasting else Severity.NOTICE,
                subject,
                f"{plural(missing.partitions, 'partition')} with {in_sync} of "
                f"{plural(replicas, 'replica')} in sync",
                missing.seen,
                "A broker is down, restarts, or does not keep up with its leaders.",
                "Look for the broker that is missing (kafkawire cluster -b HOST), and compare "
                "min.insync.replicas.",
                Confidence.HIGH,
                (Setting("min.insync.replicas"), Setting("replica.lag.time.max.ms")),
                terms=("api == Metadata",),
            )


class Epoch(NamedTuple):
    """The highest leader epoch of a partition, when it was first seen, and of which broker."""

    epoch: int
    time_ns: int
    broker: str


class Outdated:
    """The Metadata responses of a broker with leader epochs that had ended.

    partitions: in one response, at most. oldest_ns: how long before the next epoch was seen.
    went_back: whether the broker had the next epoch itself.
    """

    __slots__ = ("oldest_ns", "partitions", "seen", "went_back")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.partitions = self.oldest_ns = 0
        self.went_back = False


class StaleBrokers(Rule):
    """Brokers with metadata of the past."""

    name = "stale-brokers"
    description = (
        "A broker responds to Metadata requests with a leader epoch that had ended for a while, as "
        "another broker, or the same one, had stated: clients find the wrong leader. Known where "
        "the responses have topic ids (Kafka 2.8); a topic that is created again has another id."
    )
    apis = frozenset({ApiKey.METADATA})
    thresholds = (
        Threshold("responses", 2, "responses", "one may come from a broker that has just started"),
        Threshold("seconds", 5, "s", "brokers have new metadata within milliseconds"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._epochs: dict[tuple[bytes, int], Epoch] = {}
        self._brokers: Subjects[Outdated] = Subjects(Outdated)
        self._settled_ns = limits["seconds"] * 1e9

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare the leader epochs in a Metadata response with those before."""
        response = exchange.response
        if response is None or response.message is None or response.request_time_ns is None:
            return
        if NO_TIME in (response.request_time_ns, response.time_ns):
            return
        message: Any = response.message
        outdated = [
            before
            for topic in message.topics or ()
            if (topic_id := TOPIC_ID.of(topic)) and topic_id != ZERO
            for partition in topic.partitions
            if (before := self._newer(exchange, response, topic_id, partition)) is not None
        ]
        if outdated:
            broker = self._brokers.of(Subject(broker=exchange.broker))
            broker.seen.add(response)
            broker.partitions = max(broker.partitions, len(outdated))
            oldest_ns = response.request_time_ns - min(one.time_ns for one in outdated)
            broker.oldest_ns = max(broker.oldest_ns, oldest_ns)
            broker.went_back |= any(one.broker == exchange.broker for one in outdated)

    def _newer(
        self, exchange: Exchange, response: Row, topic_id: bytes, partition: Any
    ) -> Epoch | None:
        """Return the epoch that had followed that of a partition for a while before the request."""
        place, epoch = (topic_id, partition.partition_index), partition.leader_epoch
        before = self._epochs.get(place)
        if before is None or epoch > before.epoch:
            if before is not None or len(self._epochs) < MAX_SUBJECTS:
                self._epochs[place] = Epoch(epoch, response.time_ns, exchange.broker)
            return None
        sent_ns = response.request_time_ns or 0
        is_old = 0 <= epoch < before.epoch and sent_ns - before.time_ns >= self._settled_ns
        return before if is_old else None

    def findings(self) -> Iterator[Finding]:
        """Return the brokers with old epochs."""
        for subject, broker in self._brokers:
            if broker.seen.count < self.limits["responses"]:
                continue
            others = "" if broker.went_back else " by other brokers"
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"old leader epochs of {plural(broker.partitions, 'partition')} in "
                f"{plural(broker.seen.count, 'Metadata response')}, up to "
                f"{broker.oldest_ns / 1e9:,.0f} s after newer ones{others}",
                broker.seen,
                "The metadata of the cluster was lost in part: an older controller or snapshot "
                "took over."
                if broker.went_back
                else "The broker does not get metadata from the controller, or does not apply it.",
                "Look at last-applied-record-lag-ms and metadata-apply-error-count of the broker "
                "and at its connection to the controllers (kafka-metadata-quorum.sh describe "
                "--replication); restart it if it does not catch up.",
                Confidence.HIGH,
                (Setting("controller.quorum.bootstrap.servers"),),
                "KIP-320, KIP-595",
                ("api == Metadata",),
            )


class EpochEnd(NamedTuple):
    """The largest high watermark of a partition in the newest leader epoch that was seen.

    topic: the id where consumers state it: a topic that is created again has another one.
    """

    epoch: int
    offset: int
    topic: TopicKey


class LogTruncation(Rule):
    """Logs that became shorter."""

    name = "log-truncation"
    description = (
        "The log of a partition became shorter: a broker's high watermark goes back, a Fetch "
        "response has a diverging epoch for a consumer, or a leader epoch ends before the high "
        "watermark that it had. Records that were acknowledged may be lost."
    )
    apis = frozenset({ApiKey.OFFSET_FOR_LEADER_EPOCH})
    thresholds = (
        Threshold("times", 1, "times", "the high watermark of a healthy partition never goes back"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._epoch_ends: dict[tuple[TopicKey, int], EpochEnd] = {}
        self._partitions: Subjects[Occurrences] = Subjects(Occurrences)
        self._lost: dict[Subject, int] = {}
        self._lost_of_epochs: set[Subject] = set()

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare the ends of epochs in a response with the high watermarks before."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or response.time_ns == NO_TIME:
            return
        body: Any = request.message
        message: Any = response.message
        if body is not None and message is not None and body.replica_id < 0:
            self._compare_epochs(response, body, message)

    def fetched(self, fetched: Fetched) -> None:
        """Compare the high watermarks in a Fetch response with those before."""
        _, _, response, body, _, requested, partitions = fetched
        at_ns = response.time_ns
        if at_ns == NO_TIME or body.replica_id >= 0 or body.replica_state.replica_id >= 0:
            return  # followers truncate their logs as a rule
        for partition, one in requested:  # a session keeps what is stated
            partition.stated_epoch = one.current_leader_epoch
        for partition, one in partitions:
            if one.error_code:
                continue
            offset, before = one.high_watermark, partition.high_watermark
            if one.diverging_epoch.epoch >= 0:
                self._diverging(response, partition)
            elif before is None or offset >= before:
                partition.high_watermark, partition.seen_ns = offset, at_ns
            elif offset >= 0 and at_ns - partition.seen_ns > SETTLED_NS:
                self._went_back(response, partition, before - offset)
                partition.high_watermark, partition.seen_ns = offset, at_ns
            if partition.stated_epoch >= 0:
                self._note_epoch(partition, offset)

    def _note_epoch(self, partition: PartitionAt, offset: int) -> None:
        """Note the high watermark of a partition in the leader epoch that consumers state."""
        topic, epoch = partition.topic, partition.stated_epoch
        place = self._name(topic), partition.index
        before = self._epoch_ends.get(place)
        if before is None:
            if len(self._epoch_ends) >= MAX_SUBJECTS:
                return
        elif topic == before.topic and (epoch, offset) <= before[:2]:
            return
        self._epoch_ends[place] = EpochEnd(epoch, offset, topic)

    def _name(self, topic: TopicKey) -> TopicKey:
        """Return the name of a topic, which OffsetForLeaderEpoch has; its id if it is unknown."""
        if not isinstance(topic, bytes):
            return topic
        return self.scene.names.topic(None, topic).name or topic

    def _compare_epochs(self, response: Row, request: Any, message: Any) -> None:
        """Compare the ends of epochs with the high watermarks seen in them.

        All replicas in sync have what is below a high watermark: a leader elected from them has it.
        """
        epochs = {
            (topic.topic, one.partition): one.leader_epoch
            for topic in request.topics
            for one in topic.partitions
        }
        for topic in message.topics:
            for one in topic.partitions:
                place = topic.topic, one.partition
                before = self._epoch_ends.get(place)
                if before is None or one.error_code or one.end_offset < 0:
                    continue
                if epochs.get(place, -1) >= before.epoch and one.end_offset < before.offset:
                    subject = Subject(topic=before.topic, partition=one.partition)
                    self._partitions.of(subject).add(response)
                    self._lost[subject] = max(
                        self._lost.get(subject, 0), before.offset - one.end_offset
                    )
                    self._lost_of_epochs.add(subject)

    def _diverging(self, response: Row, partition: PartitionAt) -> None:
        """Count a Fetch response with a diverging epoch."""
        subject = Subject(topic=partition.topic, partition=partition.index)
        self._partitions.of(subject).add(response)

    def _went_back(self, response: Row, partition: PartitionAt, records: int) -> None:
        """Count a high watermark that went back by so many records."""
        subject = Subject(topic=partition.topic, partition=partition.index)
        self._partitions.of(subject).add(response)
        self._lost[subject] = self._lost.get(subject, 0) + records

    def findings(self) -> Iterator[Finding]:
        """Return the partitions whose log was truncated."""
        for subject, seen in self._partitions:
            if seen.count < self.limits["times"]:
                continue
            lost = self._lost.get(subject)
            what = (
                "Fetch responses with a diverging epoch"
                if lost is None
                else f"the high watermark went back by {plural(lost, 'record')}"
            )
            is_lost = subject in self._lost_of_epochs
            if is_lost:
                what = f"a leader lacks {plural(lost or 0, 'record')} that consumers could read"
            yield Finding(
                self.name,
                Severity.CRITICAL if is_lost else Severity.WARNING,
                subject,
                what,
                seen,
                "An unclean leader election, a broker that lost its disk, or a topic that was "
                "deleted and created again.",
                "Look for UncleanLeaderElectionsPerSec and restarts of the leader at this time; "
                "send with acks=all and min.insync.replicas=2.",
                Confidence.MEDIUM,
                (Setting("unclean.leader.election.enable"), Setting("min.insync.replicas")),
                "KIP-101, KIP-320",
                ("api in (Fetch, OffsetForLeaderEpoch)",),
            )
