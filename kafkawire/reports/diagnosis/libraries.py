"""Names of settings in client libraries where they differ from those of Java's clients.

Rules name the keys of Java's clients; a finding about clients of librdkafka says what they are
there. The names are those of librdkafka's CONFIGURATION.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..client import Client, Software
from .finding import Finding, Subject

LIBRDKAFKA: Final = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.poll.records": "how many messages are taken at a time",
    "max.request.size": "message.max.bytes",
    "partition.assignment.strategy=CooperativeStickyAssignor": (
        "partition.assignment.strategy=cooperative-sticky"
    ),
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.jaas.config": "sasl.username and sasl.password",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.location": "ssl.ca.location",
}
"""Key of Java's clients -> what takes its place in librdkafka."""
ALL: Final = ("all", None)
KEYS: Final = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, LIBRDKAFKA))})(?![\w.]*\w)")


class Libraries:
    """Which clients have librdkafka: by client id, group and address, and all of them."""

    def __init__(self, clients: Iterable[Client]) -> None:
        self._have_librdkafka: dict[tuple[str, str | None], bool] = {}
        for client in clients:
            if client.software is not None:
                self._add(client, is_librdkafka(client.software))

    def _add(self, client: Client, has_it: bool) -> None:
        groups = (("group", each) for each in client.groups)
        for key in (ALL, ("client", client.client_id), ("address", client.address), *groups):
            self._have_librdkafka[key] = has_it and self._have_librdkafka.get(key, True)

    def with_names(self, finding: Finding) -> Finding:
        """Add to the advice what settings are called where all clients concerned have librdkafka.

        Those that do not name their software do not count.
        """
        if not self._have_librdkafka.get(_concerned(finding.subject), False):
            return finding
        text = " ".join((finding.cause, finding.advice, *(each.key for each in finding.settings)))
        keys = dict.fromkeys(KEYS.findall(text))
        names = "; ".join(f"{LIBRDKAFKA[key]} instead of {key}" for key in keys)
        return (
            finding._replace(advice=f"{finding.advice} In librdkafka: {names}.")
            if keys
            else finding
        )


def is_librdkafka(software: Software) -> bool:
    """Whether a library is librdkafka, or is built on it: confluent-kafka names it, too."""
    return "rdkafka" in f"{software}".lower()


def _concerned(subject: Subject) -> tuple[str, str | None]:
    """Return the key of the clients that a finding may be about."""
    for kind in ("client", "group", "address"):
        value = getattr(subject, kind)
        if value is not None:
            return kind, value
    return ALL
