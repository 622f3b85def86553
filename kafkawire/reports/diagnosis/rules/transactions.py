"""Rules about transactions, of producers and of the consumers behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, Entities
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey

from ...transactions import HANDLERS, Transactions
from ..fetched import Fetched
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import Rule, Scene, Subjects, Threshold, client_of
from .consuming import CONSUMER
from .fetching import FETCH

PRODUCE: Final = ApiKey.PRODUCE
ID: Final = "transactional_id"


class TransactionRule(Rule):
    """Collects the transactions that a rule looks at when the capture ends."""

    apis = frozenset(HANDLERS)
    entities = frozenset({ERROR_CODES})

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._transactions = Transactions(scene.captures)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Handle a request of a transaction."""
        row = exchange.request
        message: Any = None if row is None else row.message
        if row is None or (row.api_key == PRODUCE and not getattr(message, ID, None)):
            return
        self._transactions.exchange(exchange, entities)

    def ended(self, connection: Ended) -> None:
        """Note until when the capture has packets."""
        self._transactions.ended(connection)


class HangingTransactions(TransactionRule):
    """Transactions without an end."""

    name = "hanging-transactions"
    description = (
        "A transaction stays open for longer than its timeout, or for very long: consumers with "
        "read_committed do not get beyond it."
    )
    thresholds = (Threshold("seconds", 60, "s", "transaction.timeout.ms is a minute by default"),)

    def findings(self) -> Iterator[Finding]:
        """Return the transactions that are open for too long when the capture ends."""
        for history in self._transactions.all:
            open_one = history.current
            if open_one is None:
                continue
            age_ns = since(open_one.begin_ns, self._transactions.last_ns)
            if age_ns is None or age_ns < self.limits["seconds"] * 1e9:
                continue
            seen = Occurrences()
            seen.count, seen.time_ns, seen.bytes = 1, age_ns, open_one.bytes
            seen.first_ns, seen.last_ns = open_one.begin_ns, self._transactions.last_ns
            timeout = history.timeout_ms
            yield Finding(
                self.name,
                Severity.WARNING,
                Subject(
                    client=open_one.client_id or None,
                    transactional_id=history.transactional_id,
                ),
                f"open for {age_ns / 1e9:,.0f} s at the end of the capture",
                seen,
                "The producer ended without ending its transaction, or it takes very long.",
                "Look at the process; a coordinator aborts the transaction after "
                "transaction.timeout.ms, or kafka-transactions.sh abort does.",
                Confidence.MEDIUM,
                (Setting("transaction.timeout.ms", None if timeout is None else str(timeout)),),
                "KIP-664",
            )


class LongTransactions(TransactionRule):
    """Transactions that took long until they ended."""

    name = "long-transactions"
    description = (
        "Transactions stay open for long before they are committed or aborted: consumers with "
        "read_committed get the records, and those behind them, only then."
    )
    thresholds = (
        Threshold("seconds", 30, "s", "a transaction lasts for a fraction of a second as a rule"),
    )

    def findings(self) -> Iterator[Finding]:
        """Return the transactional ids with transactions that took long."""
        for history in self._transactions.all:
            durations = history.durations
            longest_ns, median_ns = durations.max, durations.at(0.5)
            if longest_ns is None or longest_ns < self.limits["seconds"] * 1e9:
                continue
            is_usual = median_ns is not None and median_ns >= self.limits["seconds"] * 1e9
            seen = Occurrences()
            seen.count, seen.time_ns = durations.count, longest_ns
            ended = [each for each in history.transactions if each.duration_ns is not None]
            seen.first_ns = min((each.begin_ns for each in ended), default=0)
            seen.last_ns = max((each.end_ns for each in ended), default=0)
            timeout = history.timeout_ms
            clients = [each for each in history.clients if each]
            yield Finding(
                self.name,
                Severity.WARNING if is_usual else Severity.NOTICE,
                Subject(
                    client=clients[0] if clients else None,
                    transactional_id=history.transactional_id,
                ),
                f"the longest of {plural(durations.count, 'transaction')} took "
                f"{longest_ns / 1e9:,.0f} s",
                seen,
                "The application does slow work inside its transactions, or commits seldom.",
                "Commit more often (commit.interval.ms of Kafka Streams), and do slow work before "
                "the transaction begins.",
                Confidence.HIGH,
                (Setting("transaction.timeout.ms", None if timeout is None else str(timeout)),),
                "KIP-98",
            )


class Ends:
    """The transactions of a transactional id that ended. seen: those that were aborted."""

    __slots__ = ("seen", "total")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.total = 0


class AbortedTransactions(Rule):
    """Transactions that are often aborted."""

    name = "aborted-transactions"
    description = (
        "A transactional producer aborts many of its transactions: the work is done again."
    )
    apis = frozenset({ApiKey.END_TXN})
    thresholds = (
        Threshold("aborts", 5, "transactions", "a few aborts after failures are normal"),
        Threshold("share", 0.2, "of all", "below, aborts cost little"),
        Threshold("critical_share", 0.9, "of all", "nearly nothing is committed"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._ids: Subjects[Ends] = Subjects(Ends)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Count the end of a transaction."""
        request, response = exchange.request, exchange.response
        if request is None or response is None:
            return
        message: Any = request.message
        body: Any = response.message
        if message is None or body is None or body.error_code:
            return
        subject = client_of(exchange, transactional_id=message.transactional_id)
        ends = self._ids.of(subject)
        ends.total += 1
        if not message.committed:
            ends.seen.add(request)

    def findings(self) -> Iterator[Finding]:
        """Return the producers that abort often."""
        for subject, ends in self._ids:
            seen = ends.seen
            share = seen.count / ends.total
            if seen.count < self.limits["aborts"] or share < self.limits["share"]:
                continue
            is_critical = share >= self.limits["critical_share"]
            yield Finding(
                self.name,
                Severity.CRITICAL if is_critical else Severity.WARNING,
                subject,
                f"{seen.count:,} of {ends.total:,} transactions were aborted",
                seen,
                "The application fails inside its transactions, or gives up on errors.",
                "Look at the errors of this client and at the application's log "
                "(kafkawire transactions).",
                Confidence.HIGH,
                terms=("api == EndTxn",),
            )


class Stable:
    """The last stable offset of a partition, and since when it has not moved.

    stalled: the longest such time behind an open transaction, and the records behind it then.
    """

    __slots__ = ("behind", "offset", "seen", "since_ns", "stalled_ns")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.offset = -1
        self.since_ns = self.stalled_ns = self.behind = 0


class StalledReadCommitted(Rule):
    """Consumers with read_committed that wait for an open transaction."""

    name = "read-committed-stalled"
    description = (
        "A consumer with read_committed gets nothing although there are records: the last stable "
        "offset of the partition does not move, because a transaction is open."
    )
    thresholds = (
        Threshold("seconds", 30, "s", "a transaction lasts for a fraction of a second as a rule"),
        Threshold("critical", 900, "s", "transaction.max.timeout.ms is 15 minutes by default"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._partitions: Subjects[Stable] = Subjects(Stable)

    def fetched(self, fetched: Fetched) -> None:
        """Compare last stable offsets with those before."""
        exchange, _, response, body, _, _, partitions = fetched
        if not body.isolation_level or body.replica_id != CONSUMER or response.time_ns == NO_TIME:
            return
        for partition, one in partitions:
            if not one.error_code and one.last_stable_offset >= 0:
                client = client_of(exchange, topic=partition.topic)
                stable = self._partitions.of(client._replace(partition=partition.index))
                at_ns = response.time_ns
                if one.last_stable_offset != stable.offset or (
                    one.high_watermark <= one.last_stable_offset
                ):
                    stable.offset, stable.since_ns = one.last_stable_offset, at_ns
                elif at_ns - stable.since_ns > stable.stalled_ns:
                    stable.stalled_ns = at_ns - stable.since_ns
                    stable.behind = one.high_watermark - one.last_stable_offset
                    stable.seen.add(response)
                    stable.seen.time_ns = stable.stalled_ns

    def findings(self) -> Iterator[Finding]:
        """Return the partitions that stood still."""
        for subject, stable in self._partitions:
            seconds = stable.stalled_ns / 1e9
            if seconds < self.limits["seconds"]:
                continue
            yield Finding(
                self.name,
                Severity.CRITICAL if seconds >= self.limits["critical"] else Severity.WARNING,
                subject,
                f"nothing for {seconds:,.0f} s, with {stable.behind:,} records behind the last "
                "stable offset",
                stable.seen,
                "A transaction is open: its producer is slow, or ended without ending it.",
                "List open transactions (kafkawire transactions -b HOST --hanging); lower "
                "transaction.timeout.ms of the producer.",
                Confidence.HIGH,
                (Setting("isolation.level", "read_committed"), Setting("transaction.timeout.ms")),
                "KIP-98, KIP-664",
                (FETCH,),
            )
