"""Rule about transactions that cannot begin, because the one before is not yet completed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import ERROR_CODES, Entities
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.protocol.frame import SIZE

from ...error_rule import error_term
from ...finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ...rule import Rule, Scene, Subjects, Threshold, client_of

CONCURRENT: Final = ErrorCode.CONCURRENT_TRANSACTIONS
RETRY_NS: Final = 2_000_000_000
"""Within which a client tries again: retry.backoff.max.ms is a second by default."""


class Waits:
    """The waits of a transactional id.

    since_ns, last_ns: when the present one began, and its last error; since_ns None without one.
    errors: of the present one. count, longest_ns: of those with enough errors.
    """

    __slots__ = ("count", "errors", "last_ns", "longest_ns", "seen", "since_ns")

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.since_ns: int | None = None
        self.errors = self.count = self.longest_ns = self.last_ns = 0


class ConcurrentTransactions(Rule):
    """Producers that retry for long, until they may go on."""

    name = "concurrent-transactions"
    description = (
        "A transactional producer gets CONCURRENT_TRANSACTIONS for long: its transaction cannot "
        "begin, because the markers of the one before are not yet in all partitions. A retry or "
        "two are normal."
    )
    apis = frozenset(
        {
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.END_TXN,
        }
    )
    entities = frozenset({ERROR_CODES})
    error_codes = frozenset({CONCURRENT})
    thresholds = (
        Threshold("errors", 4, "errors", "fewer in a row are retries whose success was lost"),
        Threshold("seconds", 1, "s", "markers are written within milliseconds"),
        Threshold("critical", 30, "s", "a broker that has the partitions does not come back"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._waits: Subjects[Waits] = Subjects(Waits)

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        """Continue or end the wait of a transactional id."""
        request, response = exchange.request, exchange.response
        if request is None or response is None:
            return
        named = Entities(self.scene.names)
        named.add(request)
        for name in named.transactional_ids:
            waits = self._waits.of(client_of(exchange, transactional_id=name))
            if CONCURRENT not in entities.error_codes:
                waits.since_ns = None
                continue
            retried_ns = since(waits.last_ns, request.time_ns) or 0
            if waits.since_ns is None or retried_ns > RETRY_NS:  # or the success was not captured
                waits.since_ns, waits.errors = request.time_ns, 0
            waits.errors += 1
            waits.count += waits.errors == self.limits["errors"]
            waits.seen.add(response, request.length + response.length + 2 * SIZE)
            waits.last_ns = response.time_ns
            waited_ns = since(waits.since_ns, response.time_ns) or 0
            if waits.errors >= self.limits["errors"]:
                waits.longest_ns = max(waits.longest_ns, waited_ns)

    def findings(self) -> list[Finding]:
        """Return the producers that waited for long."""
        return [
            self._finding(client, waits)
            for client, waits in self._waits
            if waits.longest_ns >= self.limits["seconds"] * 1e9
        ]

    def _finding(self, subject: Subject, waits: Waits) -> Finding:
        is_critical = waits.longest_ns >= self.limits["critical"] * 1e9
        waits.seen.time_ns = waits.longest_ns
        return Finding(
            self.name,
            Severity.CRITICAL if is_critical else Severity.WARNING,
            subject,
            f"{CONCURRENT.name} in {plural(waits.seen.count, 'response')}: waited "
            f"{plural(waits.count, 'time')}, for up to {waits.longest_ns / 1e9:.1f} s",
            waits.seen,
            "A broker that leads partitions of the transaction before is slow or down, so that "
            "its markers are not written; or transactions have very many partitions.",
            "Look for slow or missing leaders of the partitions of this producer, and of "
            "__transaction_state; commit less often (commit.interval.ms of Kafka Streams).",
            Confidence.MEDIUM,
            (Setting("commit.interval.ms"),),
            "KIP-98, KIP-890",
            (error_term([CONCURRENT.name]),),
        )
