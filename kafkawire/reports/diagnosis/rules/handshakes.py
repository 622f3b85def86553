"""Rules about handshakes that fail, of TCP and of TLS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kafkawire.capture.exchanges.exchanges import Ended
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tls.alerts import CLEAR_BYTES, clear_alert, fatal_alert
from kafkawire.capture.tls.outputs import Problem
from kafkawire.display import plural

from ...clients import UndecodedConnections, host
from ..finding import Confidence, Finding, Occurrences, Setting, Severity, Subject
from ..rule import MAX_SUBJECTS, Rule, Scene, Subjects, Threshold
from .connections import of_connection


class Cause(NamedTuple):
    """Why a handshake fails, what to look at, and the configuration keys about it."""

    cause: str
    advice: str
    settings: tuple[str, ...] = ()


UNTRUSTED: Final = Cause(
    "One side does not trust the certificate of the other.",
    "Check that the truststore has the authority that signed the certificate, that the certificate "
    "is valid now, and that its names match the host.",
    ("ssl.truststore.location", "ssl.keystore.location", "ssl.endpoint.identification.algorithm"),
)
NO_CERTIFICATE: Final = Cause(
    "The broker requires a certificate of the client (ssl.client.auth=required).",
    "Give the client a keystore.",
    ("ssl.keystore.location", "ssl.client.auth"),
)
NOTHING_IN_COMMON: Final = Cause(
    "Client and broker have no TLS version or cipher suite in common.",
    "Compare ssl.enabled.protocols and ssl.cipher.suites of both; Java before 8u261 lacks TLS 1.3.",
    ("ssl.enabled.protocols", "ssl.cipher.suites"),
)
NOT_TLS: Final = Cause(
    "The client does not use TLS, and the listener does.",
    "Set security.protocol of the client to SSL or SASL_SSL, or use the port of a plaintext "
    "listener.",
    ("security.protocol",),
)
NOT_TLS_BROKER: Final = Cause(
    "The client uses TLS, and the listener does not: the broker reads the ClientHello as a request "
    "that is too large, and closes the connection.",
    "Set security.protocol of the client to PLAINTEXT or SASL_PLAINTEXT, or use the port of a TLS "
    "listener (listener.security.protocol.map).",
    ("security.protocol", "listeners"),
)
OTHER: Final = Cause(
    "One side rejects what the other sent in the handshake.",
    "Look at the logs of client and broker at these times.",
    ("ssl.enabled.protocols",),
)

CAUSES: Final = {
    **dict.fromkeys(
        (
            "bad_certificate",
            "unsupported_certificate",
            "certificate_revoked",
            "certificate_expired",
            "certificate_unknown",
            "unknown_ca",
        ),
        UNTRUSTED,
    ),
    "certificate_required": NO_CERTIFICATE,
    **dict.fromkeys(
        ("handshake_failure", "protocol_version", "insufficient_security"), NOTHING_IN_COMMON
    ),
}
"""Alerts -> why."""

PLAINTEXT_CLIENT: Final = "requests without TLS, answered by a TLS alert"
NO_ANSWER: Final = "ClientHello, and the broker closes the connection"


class Failures:
    """Handshakes that failed. undecoded: their connections without a decoded request."""

    def __init__(self) -> None:
        self.seen = Occurrences()
        self.undecoded: Counter[UndecodedConnections] = Counter()


class TlsHandshakes(Rule):
    """TLS handshakes that fail."""

    name = "tls-handshakes"
    description = (
        "A TLS handshake fails: an alert that is not encrypted, a client without TLS at a listener "
        "with TLS, or the other way round. Alerts of TLS 1.3 are encrypted after the ServerHello."
    )
    statuses = frozenset({Status.OTHER_PROTOCOL, Status.GAP, Status.UNPARSED})
    thresholds = (
        Threshold("handshakes", 1, "handshakes", "with a correct configuration none fails"),
        Threshold("critical", 10, "handshakes", "the client cannot connect at all"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._failures: dict[str, Subjects[Failures]] = {}
        self._failed: dict[int, Failures] = {}  # by open connection
        self._hellos: dict[int, Located] = {}  # by connection, if that has no other row
        self._others: set[int] = set()  # connections with other rows

    def row(self, located: Located) -> None:
        """Count an alert, or note a ClientHello without a ServerHello."""
        connection, client, _, row = located
        if connection is None or client is None:
            return
        is_hello = row.direction == "request" and row.error.endswith(Problem.NO_SERVER_HELLO)
        if is_hello and row.status is Status.OTHER_PROTOCOL:
            if len(self._hellos) < MAX_SUBJECTS:
                self._hellos[connection] = located
            return
        self._others.add(connection)
        alert = fatal_alert(row.error)
        if row.status is Status.OTHER_PROTOCOL and alert is not None:
            self._add(f"alert {alert}", located)
        elif row.status is Status.UNPARSED and len(row.raw) == CLEAR_BYTES and clear_alert(row.raw):
            self._add(PLAINTEXT_CLIENT, located)

    def _add(self, what: str, located: Located) -> None:
        subject = Subject(address=host(located.client or ""), broker=located.broker)
        failures = self._failures.setdefault(what, Subjects(Failures)).of(subject)
        failures.seen.add(located.row, located.row.length)
        if located.connection is not None:
            self._failed[located.connection] = failures

    def ended(self, connection: Ended) -> None:
        """Count a ClientHello without an answer, if the connection was established."""
        hello = self._hellos.pop(connection.connection, None)
        has_others = connection.connection in self._others
        self._others.discard(connection.connection)
        established = connection.broker_tcp.opened and not has_others
        if hello and established and (connection.reset or connection.broker_tcp.finished):
            self._add(NO_ANSWER, hello)
        failures = self._failed.pop(connection.connection, None)
        undecoded = self.scene.clients.last_undecoded
        if failures is not None and undecoded is not None:
            failures.undecoded[undecoded] += 1

    def findings(self) -> Iterator[Finding]:
        """Return the clients whose handshakes fail."""
        explained = self.scene.explained[self.name] = Counter()
        for what, subjects in self._failures.items():
            cause = cause_of(what)
            for subject, failures in subjects:
                seen = failures.seen
                if seen.count < self.limits["handshakes"]:
                    continue
                explained.update(failures.undecoded)
                is_critical = seen.count >= self.limits["critical"]
                yield Finding(
                    self.name,
                    Severity.CRITICAL if is_critical else Severity.WARNING,
                    subject,
                    f"{plural(seen.count, 'TLS handshake')} failed: {what}",
                    seen,
                    cause.cause,
                    cause.advice,
                    Confidence.MEDIUM if what == NO_ANSWER else Confidence.HIGH,
                    tuple(Setting(key) for key in cause.settings),
                )


def cause_of(what: str) -> Cause:
    """Return the cause of a failure."""
    if what == PLAINTEXT_CLIENT:
        return NOT_TLS
    if what == NO_ANSWER:
        return NOT_TLS_BROKER
    return CAUSES.get(what.removeprefix("alert "), OTHER)


REFUSED: Final = "refused (RST)"
UNANSWERED: Final = "without an answer"

FAILURES: Final = {
    REFUSED: "No process listens on the port: the broker is down, or it restarts.",
    UNANSWERED: "The host is down, or a firewall drops the packets.",
}


class FailedConnections(Rule):
    """Connections that are not established."""

    name = "failed-connections"
    description = (
        "A client tries to connect to the port of a broker, and gets a RST or no answer at all "
        "(half-open connections). Captures without any packets of brokers are not judged."
    )
    thresholds = (
        Threshold("attempts", 3, "attempts", "a broker that restarts refuses one or two"),
        Threshold("critical", 100, "attempts", "the client tries again and again"),
    )

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._attempts: dict[str, Subjects[Occurrences]] = {
            outcome: Subjects(Occurrences) for outcome in FAILURES
        }
        self._brokers_captured = False

    def ended(self, connection: Ended) -> None:
        """Count a connection without the SYN of the broker and without data."""
        self._brokers_captured |= connection.broker_tcp.opened
        if not connection.client_tcp.opened or connection.broker_tcp.opened:
            return
        if not connection.captured_bytes:
            attempts = self._attempts[REFUSED if connection.reset else UNANSWERED]
            attempts.of(of_connection(connection)).add_at(
                connection.first_packet, connection.first_ns
            )

    def findings(self) -> Iterator[Finding]:
        """Return the clients and brokers with failed attempts, at ports that brokers have.

        A capture without the packets of brokers cannot show whether connections are established.
        """
        clients = self.scene.clients.all
        if not self._brokers_captured and not any(client.responses for client in clients):
            return
        ports = {port_of(broker) for broker in self.scene.clients.brokers}
        for outcome, subjects in self._attempts.items():
            for subject, seen in subjects:
                if seen.count < self.limits["attempts"] or port_of(subject.broker) not in ports:
                    continue
                is_critical = seen.count >= self.limits["critical"]
                yield Finding(
                    self.name,
                    Severity.CRITICAL if is_critical else Severity.WARNING,
                    subject,
                    f"{plural(seen.count, 'connection')} {outcome}",
                    seen,
                    FAILURES[outcome],
                    "Check that the broker runs, and advertised.listeners and firewalls; remove "
                    "hosts that are gone from bootstrap.servers.",
                    Confidence.MEDIUM,
                    (Setting("bootstrap.servers"), Setting("reconnect.backoff.ms")),
                )


def port_of(broker: str | None) -> str:
    """Return the port of `address:port`."""
    return (broker or "").rpartition(":")[2]
