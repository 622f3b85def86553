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
KEYS: Final = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, LIBRDKAFKA))})(?![\w.]*\w)")


def is_librdkafka(software: Software) -> bool:
    """Whether a library is librdkafka, or is built on it: confluent-kafka names it, too."""
    return "rdkafka" in f"{software}".lower()


def with_names(finding: Finding, clients: Iterable[Client]) -> Finding:
    """Add to the advice what settings are called in librdkafka, if all its clients have that."""
    text = " ".join((finding.cause, finding.advice, *(each.key for each in finding.settings)))
    keys = dict.fromkeys(KEYS.findall(text))
    concerned = [each.software for each in clients if _concerns(finding.subject, each)]
    known = [software for software in concerned if software is not None]
    if not keys or not known or not all(map(is_librdkafka, known)):
        return finding
    names = "; ".join(f"{LIBRDKAFKA[key]} instead of {key}" for key in keys)
    return finding._replace(advice=f"{finding.advice} In librdkafka: {names}.")


def _concerns(subject: Subject, client: Client) -> bool:
    """Whether a finding may be about a client."""
    if subject.client is not None:
        return client.client_id == subject.client
    if subject.group is not None:
        return subject.group in client.groups
    return subject.address in (None, client.address)
