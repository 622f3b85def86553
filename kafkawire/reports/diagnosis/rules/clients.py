"""Rules about clients in general: metadata, throttling, lost requests, old versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.display import plural
from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.frame import SIZE

from ...client import Client
from ...readiness import BROKERS
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold, client_at, client_of


class MetadataStorm(Rule):
    """Metadata requests all the time."""

    name = "metadata-storm"
    description = (
        "A client requests metadata far more often than metadata.max.age.ms, all the time and not "
        "only when it starts."
    )
    apis = frozenset({ApiKey.METADATA})
    thresholds = (
        Threshold("requests", 60, "requests", "clients send several when they start"),
        Threshold("per_second", 1, "1/s", "the default of metadata.max.age.ms is five minutes"),
        Threshold("seconds", 20, "s", "starting takes less"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients: Subjects[Occurrences] = Subjects(Occurrences)

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Count a Metadata request."""
        size = sum(row.length + SIZE for row in exchange[3:] if row is not None)
        self._clients.of(client_at(exchange)).add(exchange.main_row, size)

    def findings(self) -> Iterator[Finding]:
        """Return the clients with many requests."""
        for subject, seen in self._clients:
            if seen.count < self.limits["requests"] or seen.span_seconds < self.limits["seconds"]:
                continue
            if seen.per_second < self.limits["per_second"]:
                continue
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{seen.count:,} Metadata requests, {seen.per_second:.1f} a second",
                seen,
                "Errors that make metadata invalid, unknown topics, or an application that creates "
                "clients or lists topics all the time.",
                "Look at other findings about this client; keep one client per process; check "
                "metadata.max.age.ms and topic.metadata.refresh.interval.ms (librdkafka).",
                Confidence.MEDIUM,
                (Setting("metadata.max.age.ms", f"{1000 / seen.per_second:,.0f} ms seen"),),
                terms=("api == Metadata",),
            )


class Throttling(Rule):
    """Clients that a quota slows down."""

    name = "throttling"
    description = "A broker delays a client because it exceeds a quota."
    thresholds = (
        Threshold("seconds", 1, "s", "a shorter delay rarely matters"),
        Threshold("longest", 300, "s", "quotas do not delay a response for longer"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients: Subjects[Occurrences] = Subjects(Occurrences)

    def throttled(self, exchange: Exchange, throttle_time_ms: int) -> None:
        """Add up the throttle time of a response."""
        if exchange.response is not None and throttle_time_ms <= self.limits["longest"] * 1000:
            subject = client_of(exchange, api=exchange.main_row.api_name)
            lost = throttle_time_ms * 1_000_000
            self._clients.of(subject).add(exchange.response, time_ns=lost)

    def findings(self) -> Iterator[Finding]:
        """Return the clients and APIs with throttle times."""
        for subject, seen in self._clients:
            if seen.time_ns < self.limits["seconds"] * 1e9:
                continue
            yield Finding(
                self.name,
                Severity.WARNING,
                subject,
                f"{plural(seen.count, 'response')} with {seen.time_ns / 1e9:,.1f} s of "
                "throttle_time_ms",
                seen,
                "The client exceeds a quota of its user, its client id or its IP address.",
                "Raise the quota (kafka-configs.sh --alter --entity-type clients or users), or let "
                "the client send less.",
                Confidence.HIGH,
                (
                    Setting("producer_byte_rate"),
                    Setting("consumer_byte_rate"),
                    Setting("request_percentage"),
                ),
                "KIP-124",
            )


class OldVersions(Rule):
    """Versions that a later release does not have."""

    name = "old-versions"
    description = (
        "A client uses versions of APIs that a later Kafka release no longer supports: it fails "
        "after the upgrade."
    )

    def findings(self) -> Iterator[Finding]:
        """Return the clients with such versions, by the first release without them."""
        for client in self.scene.clients.all[:MAX_SUBJECTS]:
            if any(call.api_key in BROKERS for call in client.calls):
                continue  # brokers are upgraded themselves
            for release, calls in self._dropped(client).items():
                seen = Occurrences()
                seen.count = sum(calls.values())
                seen.first_ns, seen.last_ns = client.first_ns, client.last_ns
                software = f" ({client.software})" if client.software else ""
                yield Finding(
                    self.name,
                    Severity.WARNING,
                    Subject(client=client.client_id or None, address=client.address),
                    f"uses {', '.join(calls)}, which Kafka {release} does not support{software}",
                    seen,
                    "The client library is old, or limited to old versions (api.version, "
                    "broker.version.fallback, inter.broker.protocol.version).",
                    f"Upgrade the client first (kafkawire readiness --target {release}).",
                    Confidence.HIGH,
                    reference=f"Kafka {release}" + (", KIP-896" if release == "4.0" else ""),
                )

    def _dropped(self, client: Client) -> dict[str, dict[str, int]]:
        """Return the requests whose version is dropped, by release."""
        dropped: dict[str, dict[str, int]] = {}
        for call in sorted(client.calls):
            if call.api_name is None:
                continue
            release = self.scene.dropped_in(call.api_name, call.api_version)
            if release is not None:
                calls = dropped.setdefault(release, {})
                calls[f"{call.api_name} v{call.api_version}"] = client.calls[call]
        return dropped
