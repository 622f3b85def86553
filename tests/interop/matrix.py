"""The interoperability table: scenarios by client and broker, shown in docs/broker.md.

A cell begins with `SAME` only if `test_matrix` runs the scenario with the same results as
Java's client at Apache Kafka; cells that are not run say why. That client at that broker has
nothing of ours in it: it runs in `make soak`, and holds the scenarios themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.fuzzing import SOAK

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
    "members": "a second and third member join, one leaves",
    "static": "a static member comes back without a rebalance",
    "cooperative": "a rebalance moves only the partitions it must",
    "automatic": "auto-commit: every interval, before rebalances, at close; groups continue there",
    "commits": "commits: synchronous and asynchronous, of given offsets, of consumed offsets",
    "resets": "reset to earliest, latest, none, by duration",
    "steering": "seek, pause, resume",
    "refused": "a wrong password is reported, the right one is accepted",
}
MIXED: Final = "mixed"
"""A group of our client and others: its own table, at both brokers."""

REMARKS: Final[dict[tuple[str, str], str]] = {
    ("codecs", "kafkajs"): "none and gzip; it has no other codecs",
    ("automatic", "kafkajs"): "it commits after each batch as well",
    ("resets", "kafkajs"): "earliest and latest; it has no other policies",
    ("resets", "confluent-kafka"): "it has no durations",
    ("resets", "kafka-python"): "it has no durations",
    ("resets", "aiokafka"): "it has no durations",
    ("refused", "kafka-python"): "reports its own timeout",
}
"""Remarks on cells that are run."""
DIFFERENT: Final[dict[tuple[str, str], str]] = {
    ("static", "kafkajs"): "not supported",
    ("static", TOOLS): "they do not report rebalances",
    ("cooperative", "kafkajs"): "not supported",
    ("cooperative", "aiokafka"): "not supported",
    ("cooperative", TOOLS): "they do not report assignments",
    ("commits", TOOLS): "they have no such calls",
    ("steering", TOOLS): "they have no such calls",
    (MIXED, "kafkajs"): "no other client has its assignor",
}
"""Cells that are not run, and why."""

TOOLS_IN_SOAK: Final = ("acks", "automatic", "refused", "resets")
"""Scenarios of Java's tools that only `make soak` runs; Java's clients run them in `make test`."""


class Case(NamedTuple):
    """A scenario to run."""

    scenario: str
    client: str
    cluster: str

    def __str__(self) -> str:
        cluster = "kafka" if self.cluster == KAFKA else "ours"
        return f"{self.scenario}-{self.client.replace(' ', '-')}-{cluster}"


def pairs() -> Iterator[tuple[str, str]]:
    """The pairs of client and broker."""
    yield JAVA, KAFKA
    yield OURS, KAFKA
    for client in CLIENTS:
        yield client, OURS


def cases() -> Iterator[Case]:
    """The scenarios that are run."""
    for scenario in SCENARIOS:
        for client, cluster in pairs():
            if (scenario, client) in DIFFERENT:
                continue
            if SOAK > 1 or not _only_in_soak(scenario, client, cluster):
                yield Case(scenario, client, cluster)
    for client in CLIENTS[1:]:
        if (MIXED, client) not in DIFFERENT:
            yield Case(MIXED, client, KAFKA)
            yield Case(MIXED, client, OURS)


def _only_in_soak(scenario: str, client: str, cluster: str) -> bool:
    """Whether a scenario is left to `make soak`: each of Java's tools is a JVM of its own."""
    return (client, cluster) == (JAVA, KAFKA) or (client == TOOLS and scenario in TOOLS_IN_SOAK)


def cell(scenario: str, client: str) -> str:
    """Return the text of a cell."""
    remark = REMARKS.get((scenario, client))
    same = SAME if remark is None else f"{SAME}: {remark}"
    return DIFFERENT.get((scenario, client), same)


def drawn() -> str:
    """Render the table."""
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
    """Render the table of groups of our client and others."""
    others = CLIENTS[1:]
    return table(
        [
            ["a group of kafkawire and", *others],
            *(
                [f"at {cluster}", *(cell(MIXED, each) for each in others)]
                for cluster in (KAFKA, OURS)
            ),
        ]
    )


def table(rows: list[list[str]]) -> str:
    """Render rows as Markdown; the first is the heading."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
