"""Rule about requests that a broker cannot read, and answers by closing the connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended, Exchange
from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.rows import Row
from kafkawire.capture.tables.exchanges import since
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.display import plural
from kafkawire.protocol.frame import SIZE

from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Threshold, client_of

APART_NS: Final = 20_000_000
"""Connections that end within less are closed together, by a broker that shuts down."""


class Version(NamedTuple):
    """A version of an API that a client uses at a broker. client: its id, or its address."""

    client: str
    broker: str
    api_key: int | None
    api_version: int | None


class Unread(NamedTuple):
    """The first request of a connection that has no response."""

    version: Version
    subject: Subject
    packet: int
    time_ns: int
    size: int


class Rejected:
    """The requests of a version that were rejected. last_ns: when the last one was sent."""

    __slots__ = ("first", "last_ns", "seen")

    def __init__(self, first: Unread) -> None:
        self.first = first
        self.seen = Occurrences()
        self.last_ns: int | None = None


class RejectedRequests(Rule):
    """Requests after which the broker closes the connection."""

    name = "rejected-requests"
    description = (
        "A broker closes the connection as soon as it gets a request, again and again: it does not "
        "support the version, or cannot read the request. Only requests are counted of which no "
        "other one with the same version, and at least as large, has a response."
    )
    thresholds = (
        Threshold("requests", 3, "requests", "a broker that shuts down closes one once"),
        Threshold("seconds", 1, "s", "a broker rejects what it cannot read at once"),
        Threshold("critical", 20, "requests", "the client makes no progress"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._largest: dict[tuple[str, str, int | None, int | None], int] = {}  # by Version
        self._open: dict[int, Unread] = {}
        self._rejected: dict[Version, Rejected] = {}

    def exchange(self, exchange: Exchange, _: Entities) -> None:
        """Note how large requests with a response are."""
        client, broker, request, response = exchange[1:]
        if request is None or response is None:
            return
        version = request.client_id or client, broker, request.api_key, request.api_version
        lengths, length = self._largest, request.length
        if length > lengths.get(version, -1) and (
            version in lengths or len(lengths) < MAX_SUBJECTS
        ):
            lengths[version] = length

    def unanswered(self, exchange: Exchange, request: Row) -> None:
        """Note the first request of a connection without a response."""
        if exchange.connection not in self._open:
            client = request.client_id or exchange.client
            version = Version(client, exchange.broker, request.api_key, request.api_version)
            subject = client_of(exchange, broker=exchange.broker, api=request.api_name)
            size = request.length + SIZE
            self._open[exchange.connection] = Unread(
                version, subject, request.packet, request.time_ns, size
            )

    def ended(self, connection: Ended) -> None:
        """Count a connection that the broker closed at once."""
        unread = self._open.pop(connection.connection, None)
        closed_ns = connection.broker_tcp.finished_ns
        if unread is None or closed_ns is None or NO_TIME in (unread.time_ns, closed_ns):
            return
        client_ns = connection.client_tcp.finished_ns
        waited_ns = since(unread.time_ns, closed_ns)
        if waited_ns is None or waited_ns > self.limits["seconds"] * 1e9:
            return
        if client_ns is not None and client_ns < closed_ns:
            return  # the client closed it
        if unread.version in self._rejected or len(self._rejected) < MAX_SUBJECTS:
            self._count(unread)

    def _count(self, unread: Unread) -> None:
        """Add a request that was rejected, unless another one was just before it."""
        rejected = self._rejected.setdefault(unread.version, Rejected(unread))
        if rejected.last_ns is None or unread.time_ns - rejected.last_ns >= APART_NS:
            rejected.seen.add_at(unread.packet, unread.time_ns, unread.size)
        rejected.last_ns = unread.time_ns

    def findings(self) -> Iterator[Finding]:
        """Return the versions that are rejected."""
        for version, rejected in self._rejected.items():
            is_read = self._largest.get(version, -1) + SIZE >= rejected.first.size
            if rejected.seen.count < self.limits["requests"] or is_read:
                continue
            if version.broker in self.scene.responding:
                yield self._finding(version, rejected.first.subject, rejected.seen)

    def _finding(self, version: Version, subject: Subject, seen: Occurrences) -> Finding:
        name = f"{subject.api or 'unknown'} v{version.api_version}"
        release = self._dropped_in(version, subject)
        is_critical = release is not None or seen.count >= self.limits["critical"]
        dropped = f"Kafka {release} and later do not support {name}"
        return Finding(
            self.name,
            Severity.CRITICAL if is_critical else Severity.WARNING,
            subject,
            f"{plural(seen.count, 'connection')} closed by the broker on {name}",
            seen,
            f"{dropped}: the client library is too old for the broker."
            if release
            else "The broker does not support the version, the request is malformed, or larger "
            "than socket.request.max.bytes.",
            "Upgrade the client library, or remove settings that limit its versions "
            "(broker.version.fallback, api.version.request, api_version)."
            if release
            else "Read the broker's log at these times (InvalidRequestException, "
            "UnsupportedVersionException, InvalidReceiveException).",
            Confidence.HIGH if release else Confidence.MEDIUM,
            () if release else (Setting("socket.request.max.bytes"),),
            ("KIP-896" if release == "4.0" else ""),
            (f"version == {version.api_version}",),
        )

    def _dropped_in(self, version: Version, subject: Subject) -> str | None:
        """Return the release that no longer supports a version, None if all do."""
        if subject.api is None or version.api_version is None:
            return None
        return self.scene.dropped_in(subject.api, version.api_version)
