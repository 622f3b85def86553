"""Rules about clocks: timestamps of records, clocks of producers and of brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.messages.api_key import ApiKey

from ..finding import OTHERS, Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..produced import Produced
from ..rule import Rule, Scene, Subjects, Threshold

HOUR_NS: Final = 3600 * 10**9


class RecordClock(Rule):
    """Records with times that cannot be true."""

    name = "record-timestamps"
    description = (
        "Records are stamped with times in the future, or long ago: retention by time deletes them "
        "too late or at once."
    )
    thresholds = (
        Threshold("batches", 10, "batches", "a few may be a test"),
        Threshold("ahead_hours", 1, "h", "the broker rejects such records since Kafka 4.0"),
        Threshold("behind_hours", 168, "h", "log.retention.hours, a week, deletes such records"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._ahead: Subjects[Occurrences] = Subjects(Occurrences)
        self._behind: Subjects[Occurrences] = Subjects(Occurrences)
        self._latest_ns = int(limits["ahead_hours"] * HOUR_NS)
        self._earliest_ns = -int(limits["behind_hours"] * HOUR_NS)

    def produced(self, produced: Produced) -> None:
        """Compare the last timestamp of each batch with the time of its packet."""
        row = produced.row
        at_ns = row.time_ns
        if at_ns == NO_TIME:
            return
        earliest_ns, latest_ns = at_ns + self._earliest_ns, at_ns + self._latest_ns
        for batch in produced.batches:
            stamp_ns = batch.max_timestamp * 1_000_000
            if earliest_ns <= stamp_ns <= latest_ns or stamp_ns < 0:
                continue
            clients = self._ahead if stamp_ns > latest_ns else self._behind
            clients.of(produced.subject).add(row, batch.size)

    def findings(self) -> Iterator[Finding]:
        """Return the producers whose records have such times."""
        for text, clients in (("in the future", self._ahead), ("long ago", self._behind)):
            for subject, seen in clients:
                if seen.count < self.limits["batches"]:
                    continue
                yield Finding(
                    self.name,
                    Severity.NOTICE,
                    subject,
                    f"{seen.count:,} batches with timestamps {text}",
                    seen,
                    "The clock of the producer or of the capture is wrong, the application sets "
                    "timestamps (in seconds or microseconds?), or old data is copied.",
                    "Check the clock and the unit, which is milliseconds; "
                    "message.timestamp.type=LogAppendTime lets the broker set them.",
                    Confidence.MEDIUM,
                    (Setting("message.timestamp.type"),),
                    "KIP-937, KIP-1030",
                    ("api == Produce",),
                )


class Offset:
    """By how much the timestamps of a client's batches differ from the times of their packets."""

    __slots__ = ("highest_ns", "lowest_ns", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.lowest_ns = self.highest_ns = 0


class ClockOffset(Rule):
    """Producers whose clock differs."""

    name = "clock-offset"
    description = (
        "The timestamps of all records of a producer differ from the times of the capture by the "
        "same amount: its clock, or that of the capture, is wrong."
    )
    thresholds = (
        Threshold("batches", 20, "batches", "a few may be a test"),
        Threshold("seconds", 2, "s", "clocks that are synchronised differ by milliseconds"),
        Threshold("behind", 30, "s", "records may wait in the producer for as long"),
        Threshold("spread", 2, "s", "a larger one is not due to a clock"),
        Threshold("hours", 168, "h", "timestamps that differ by more are not those of a clock"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients: Subjects[Offset] = Subjects(Offset)

    def produced(self, produced: Produced) -> None:
        """Compare the last timestamp of each batch with the time of its packet."""
        row = produced.row
        at_ns = row.time_ns
        if at_ns == NO_TIME:
            return
        client: Offset | None = None
        for batch in produced.batches:
            stamp_ms = batch.max_timestamp
            if stamp_ms < 0:
                continue
            ahead_ns = stamp_ms * 1_000_000 - at_ns
            if client is None:
                client = self._clients.of(produced.client)
            if not client.seen.count:
                client.lowest_ns = client.highest_ns = ahead_ns
            elif ahead_ns < client.lowest_ns:
                client.lowest_ns = ahead_ns
            elif ahead_ns > client.highest_ns:
                client.highest_ns = ahead_ns
            client.seen.add(row, batch.size)

    def findings(self) -> Iterator[Finding]:
        """Return the producers whose clock is ahead or behind."""
        for subject, client in self._clients:
            ahead, behind = client.lowest_ns / 1e9, -client.highest_ns / 1e9
            if client.seen.count < self.limits["batches"]:
                continue
            if (client.highest_ns - client.lowest_ns) / 1e9 > self.limits["spread"]:
                continue
            if ahead < self.limits["seconds"] and behind < self.limits["behind"]:
                continue
            if max(ahead, behind) > self.limits["hours"] * 3600:
                continue  # record-timestamps reports them
            yield Finding(
                self.name,
                Severity.NOTICE,
                subject,
                f"its clock is {max(ahead, behind):,.1f} s {'ahead' if ahead > 0 else 'behind'}",
                client.seen,
                "The clock of the producer or of the capture is not synchronised.",
                "Synchronise the clocks (NTP); message.timestamp.type=LogAppendTime does not "
                "depend on those of producers.",
                Confidence.MEDIUM,
                (Setting("message.timestamp.type"),),
                terms=("api == Produce",),
            )


class Ahead(NamedTuple):
    """By how much a clock is ahead of that of the capture, at least and at most; nanoseconds."""

    least_ns: float
    most_ns: float

    @property
    def middle_ns(self) -> float:
        """The likely value."""
        return (self.least_ns + self.most_ns) / 2

    def distance(self, other: Ahead) -> float:
        """Return how far it is ahead of another, for sure; below 0 if behind, 0 if unknown."""
        return max(0.0, self.least_ns - other.most_ns) or min(0.0, self.most_ns - other.least_ns)


OF_CAPTURE: Final = Ahead(0, 0)


class Appends:
    """What the log append times in the responses of a broker say of its clock."""

    __slots__ = ("ahead", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.ahead = Ahead(-inf, inf)


class BrokerClocks(Rule):
    """Brokers whose clock differs."""

    name = "broker-clocks"
    description = (
        "The clock of a broker differs from those of others, or from that of the capture if it is "
        "the only one. Known for topics with LogAppendTime: a broker stamps records between a "
        "Produce request and its response."
    )
    apis = frozenset({ApiKey.PRODUCE})
    thresholds = (
        Threshold("responses", 10, "responses", "a few may be a test"),
        Threshold("seconds", 1, "s", "clocks that are synchronised differ by milliseconds"),
        Threshold("spread", 0.2, "s", "a clock that moves by more was set, or batches are old"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._brokers: Subjects[Appends] = Subjects(Appends)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Compare a log append time with the times of the request and of the response."""
        address, request, response = exchange[2:]
        if request is None or response is None or response.message is None:
            return
        message: Any = response.message
        for topic in message.responses:
            for partition in topic.partition_responses:
                append_ms = partition.log_append_time_ms
                if append_ms >= 0 and not partition.error_code:
                    sent_ns, received_ns = request.time_ns, response.time_ns
                    if NO_TIME in (sent_ns, received_ns):
                        return
                    broker = self._brokers.of(Subject(broker=address))
                    broker.seen.add(response)
                    append_ns, ahead = append_ms * 1_000_000, broker.ahead
                    broker.ahead = Ahead(
                        max(ahead.least_ns, append_ns - received_ns),
                        min(ahead.most_ns, append_ns + 1_000_000 - sent_ns),
                    )
                    return  # those of one response are alike

    def findings(self) -> Iterator[Finding]:
        """Return the brokers whose clock is ahead or behind."""
        spread_ns = self.limits["spread"] * 1e9
        clocks = {
            subject: broker
            for subject, broker in self._brokers
            if broker.seen.count >= self.limits["responses"]
            and broker.ahead.least_ns - broker.ahead.most_ns <= spread_ns
            and subject != OTHERS
        }
        if not clocks:
            return
        nearest = min(clocks, key=lambda subject: abs(clocks[subject].ahead.middle_ns))
        several = len(clocks) > 1
        usual = clocks[nearest].ahead if several else OF_CAPTURE
        other = f"that of {nearest.broker}" if several else "the clock of the capture"
        for subject, broker in clocks.items():
            seconds = broker.ahead.distance(usual) / 1e9
            if abs(seconds) < self.limits["seconds"]:
                continue
            yield Finding(
                self.name,
                Severity.WARNING if several else Severity.NOTICE,
                subject,
                f"its clock is {abs(seconds):,.1f} s {'ahead of' if seconds > 0 else 'behind'} "
                f"{other}",
                broker.seen,
                "The clock of the broker is not synchronised."
                if several
                else "The clock of the broker or of the capture is not synchronised.",
                "Synchronise the clocks of all brokers (NTP, chronyc tracking): retention by time "
                "and searches by timestamp depend on them with LogAppendTime.",
                Confidence.MEDIUM if several else Confidence.LOW,
                (Setting("message.timestamp.type", "LogAppendTime"), Setting("log.retention.ms")),
                terms=("api == Produce",),
            )
