"""Rules about how consumers fetch and commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.group_event import COMMITTED, GroupEvent
from kafkawire.protocol.frame import SIZE

from ..fetched import Fetched
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold, client_of

CONSUMER: Final = -1
"""The replica id of consumers in Fetch requests."""


class Fetches:
    """The Fetch requests of a client to a broker.

    min_bytes, max_wait_ms: of the last request.
    """

    __slots__ = ("empty", "max_wait_ms", "min_bytes", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.empty = 0
        self.min_bytes = self.max_wait_ms = 0


class TinyFetches(Rule):
    """Many Fetch responses with little in them."""

    name = "tiny-fetches"
    description = (
        "A consumer sends many Fetch requests that return little or nothing, instead of letting "
        "the broker wait for more."
    )
    thresholds = (
        Threshold("requests", 500, "requests", "fewer say little about how a client behaves"),
        Threshold("per_second", 50, "1/s", "below, requests cost little"),
        Threshold("bytes", 1024, "B", "most of such a response is headers"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients: Subjects[Fetches] = Subjects(Fetches)

    def fetched(self, fetched: Fetched) -> None:
        """Count a Fetch of a consumer."""
        exchange, request, response, body, _, _, partitions = fetched
        if body.replica_id != CONSUMER or body.replica_state.replica_id >= 0:
            return
        client, broker = request.client_id or exchange.client, exchange.broker
        fetches = self._clients.of_key((client, broker), lambda: client_of(exchange, broker=broker))
        fetches.seen.add(response, response.length + SIZE)
        fetches.min_bytes, fetches.max_wait_ms = body.min_bytes, body.max_wait_ms
        for _, one in partitions:
            if one.records:
                break
        else:
            fetches.empty += 1

    def findings(self) -> Iterator[Finding]:
        """Return the clients with many small responses."""
        limits = self.limits
        for subject, fetches in self._clients:
            seen = fetches.seen
            size = seen.bytes / max(seen.count, 1)
            if seen.count < limits["requests"] or seen.per_second < limits["per_second"]:
                continue
            if size > limits["bytes"]:
                continue
            empty = f", {fetches.empty:,} of them empty" if fetches.empty else ""
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{seen.count:,} Fetch responses of {size:,.0f} bytes on average{empty}, "
                f"{seen.per_second:,.0f} a second",
                seen,
                "The broker responds as soon as it has fetch.min.bytes, or after "
                "fetch.max.wait.ms.",
                "Raise fetch.min.bytes (for example to 10000), and fetch.max.wait.ms to the delay "
                "that is acceptable.",
                Confidence.HIGH,
                (
                    Setting("fetch.min.bytes", str(fetches.min_bytes)),
                    Setting("fetch.max.wait.ms", str(fetches.max_wait_ms)),
                ),
                terms=("api == Fetch",),
            )


class Lag(NamedTuple):
    """The lag of a partition at a commit, and the end offset then."""

    time_ns: int
    lag: int
    offset: int


class Lags:
    """The first and the last lag of each partition of a topic, for a group."""

    __slots__ = ("first", "last", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.first: dict[int, Lag] = {}
        self.last: dict[int, Lag] = {}


class GrowingLag(Rule):
    """A group that does not keep up."""

    name = "growing-lag"
    description = (
        "The lag of a group grows: records are produced faster than the group commits. Known where "
        "the capture has commits, and Fetch or ListOffsets responses with end offsets."
    )
    thresholds = (
        Threshold("seconds", 30, "s", "within less, the lag may be one batch that is processed"),
        Threshold("records", 1000, "records", "growth of the lag; a smaller one is soon caught up"),
        Threshold("share", 0.1, "of what is produced", "that the group did not consume"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._topics: Subjects[Lags] = Subjects(Lags)

    def group_event(self, event: GroupEvent) -> None:
        """Note the lags at a commit."""
        if event.type is not COMMITTED:
            return
        for topic, partition, offset, code in event.offsets or ():
            lag = None if code else self.scene.watermarks.lag(topic, partition, offset)
            if lag is None:
                continue
            lags = self._topics.of(Subject(group=event.group_id, topic=topic.key))
            at_commit = Lag(event.row.time_ns, lag, offset)
            if lags.first.setdefault(partition, at_commit) is at_commit:
                lags.seen.add(event.row)
            lags.last[partition] = at_commit

    def findings(self) -> Iterator[Finding]:
        """Return the groups and topics whose lag grew."""
        for subject, lags in self._topics:
            first = sum(one.lag for one in lags.first.values())
            last = sum(one.lag for one in lags.last.values())
            consumed = sum(
                lags.last[partition].offset - one.offset for partition, one in lags.first.items()
            )
            began = min(one.time_ns for one in lags.first.values())
            ended = max(one.time_ns for one in lags.last.values())
            grown, seconds = last - first, (ended - began) / 1e9
            if seconds < self.limits["seconds"] or grown < self.limits["records"]:
                continue
            if grown < self.limits["share"] * (consumed + grown):
                continue
            lags.seen.last_ns = ended
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"lag grew from {first:,} to {last:,} records: {(consumed + grown) / seconds:,.0f} "
                f"produced and {consumed / seconds:,.0f} consumed a second",
                lags.seen,
                "The consumers are slower than the producers, or too few.",
                "Add members (up to the number of partitions), process in batches, or raise "
                "max.poll.records and fetch.min.bytes.",
                Confidence.HIGH,
                terms=("api in (OffsetCommit, TxnOffsetCommit)",),
            )


class Committing:
    """The commits of a client for a group. records: by which its offsets advanced."""

    __slots__ = ("records", "seen")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.records = 0


class CommitRate(Rule):
    """A commit for every record or two."""

    name = "commit-rate"
    description = (
        "A consumer commits offsets very often: each commit is a write to a replicated log."
    )
    thresholds = (
        Threshold("commits", 100, "commits", "fewer say little about how a client behaves"),
        Threshold("per_second", 10, "1/s", "automatic commits come every five seconds"),
        Threshold("records", 10, "records/commit", "more records per commit share its cost"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients: Subjects[Committing] = Subjects(Committing)
        self._offsets: dict[tuple[str, object, int], int] = {}

    def group_event(self, event: GroupEvent) -> None:
        """Count a commit, and the records since the one before."""
        if event.type is not COMMITTED:
            return
        exchange = event.exchange
        client = self._clients.of(client_of(exchange, group=event.group_id))
        lost = since(event.row.request_time_ns, event.row.time_ns) or 0
        client.seen.add(event.row, event.row.length + SIZE, lost)
        for topic, partition, offset, code in event.offsets or ():
            key = event.group_id, topic.key, partition
            before = self._offsets.get(key)
            if before is None and len(self._offsets) >= MAX_SUBJECTS:
                continue
            if not code:
                self._offsets[key] = offset
                client.records += 0 if before is None else max(0, offset - before)

    def findings(self) -> Iterator[Finding]:
        """Return the clients that commit very often."""
        limits = self.limits
        for subject, client in self._clients:
            seen = client.seen
            per_commit = client.records / max(seen.count, 1)
            if seen.count < limits["commits"] or seen.per_second < limits["per_second"]:
                continue
            if per_commit > limits["records"]:
                continue
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{seen.count:,} commits for {client.records:,} records, "
                f"{seen.per_second:,.0f} a second",
                seen,
                "The application commits after each record.",
                "Commit once per poll() or every few seconds: enable.auto.commit with "
                "auto.commit.interval.ms, or commitAsync after a batch.",
                Confidence.HIGH,
                (Setting("auto.commit.interval.ms"), Setting("enable.auto.commit")),
                terms=("api in (OffsetCommit, TxnOffsetCommit)",),
            )
