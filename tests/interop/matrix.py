"""Who does what with whose broker, and what comes of it: one table, run by the tests and drawn in
docs/broker.md.

Law: a cell begins with `SAME` only if `test_matrix` plays the scenario and finds what it finds of
Java's client at Apache Kafka; what is not played is said in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SAME: Final = "same"
OURS: Final = "kafkawire"
JAVA: Final = "java"
TOOLS: Final = "java's tools"
KAFKA: Final = "Apache Kafka"
CLIENTS: Final = (
    OURS,
    "confluent-kafka",
    "kafka-python",
    "aiokafka",
    "kafkajs",
    JAVA,
    TOOLS,
)

SCENARIOS: Final = {
    "codecs": "produce with each codec, consume",
    "acks": "acks 0, 1, all; idempotent",
    "members": "two, three members join, one leaves",
    "static": "a static member returns without a rebalance",
    "cooperative": "a cooperative rebalance moves no more partitions than needed",
    "automatic": "commits every interval, before a rebalance, at close; a group resumes there",
    "commits": "commits: synchronous, asynchronous, of given offsets, of positions",
    "resets": "reset to earliest, latest, none, by duration",
    "steering": "seek, pause, resume",
    "refused": "a wrong password is refused, the right one accepted",
}
MIXED: Final = "mixed"
"""A group of ours and theirs: its own table, at both brokers."""

REMARKS: Final[dict[tuple[str, str], str]] = {
    ("codecs", "kafkajs"): "none and gzip; it supports no others by itself",
    ("automatic", "kafkajs"): "it commits after each batch as well",
    ("resets", "kafkajs"): "earliest and latest; it supports no others",
    ("resets", "confluent-kafka"): "it does not support durations",
    ("resets", "kafka-python"): "it does not support durations",
    ("resets", "aiokafka"): "it does not support durations",
    ("refused", "kafka-python"): "it retries until its own timeout and reports that",
}
"""What is to be said of cells that are played, and come out the same otherwise."""
DIFFERENT: Final[dict[tuple[str, str], str]] = {
    ("static", "kafkajs"): "not supported",
    ("static", TOOLS): "they do not report rebalances",
    ("cooperative", "kafkajs"): "not supported",
    ("cooperative", "aiokafka"): "not supported",
    ("cooperative", TOOLS): "they do not report assignments",
    ("commits", TOOLS): "not supported",
    ("steering", TOOLS): "not supported",
    (MIXED, "kafkajs"): "no other client has its assignor",
}
"""What cannot be played, and why."""


class Case(NamedTuple):
    """A scenario that is to be played."""

    scenario: str
    client: str
    cluster: str

    def __str__(self) -> str:
        cluster = "kafka" if self.cluster == KAFKA else "ours"
        return f"{self.scenario}-{self.client.replace(' ', '-')}-{cluster}"


def pairs() -> Iterator[tuple[str, str]]:
    """Whose client with whose broker."""
    yield JAVA, KAFKA
    yield OURS, KAFKA
    for client in CLIENTS:
        yield client, OURS


def cases() -> Iterator[Case]:
    """What is played."""
    for scenario in SCENARIOS:
        for client, cluster in pairs():
            if (scenario, client) not in DIFFERENT:
                yield Case(scenario, client, cluster)
    for client in CLIENTS[1:]:
        if (MIXED, client) not in DIFFERENT:
            yield Case(MIXED, client, KAFKA)
            yield Case(MIXED, client, OURS)


def cell(scenario: str, client: str) -> str:
    """Say what comes of it."""
    remark = REMARKS.get((scenario, client))
    said = SAME if remark is None else f"{SAME}: {remark}"
    return DIFFERENT.get((scenario, client), said)


def drawn() -> str:
    """Draw the table."""
    found = list(pairs())
    rows = [
        ["", *(f"{client}, {cluster}" for client, cluster in found)],
        *(
            [words, *(cell(each, client) for client, _ in found)]
            for each, words in SCENARIOS.items()
        ),
    ]
    return table(rows)


def drawn_mixed() -> str:
    """Draw the table of groups of ours and theirs."""
    others = CLIENTS[1:]
    return table(
        [
            ["kafkawire in a group with", *others],
            *(
                [f"at {cluster}", *(cell(MIXED, each) for each in others)]
                for cluster in (KAFKA, OURS)
            ),
        ]
    )


def table(rows: list[list[str]]) -> str:
    """Draw rows, of which the first is the heading."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
