"""Who does what with whose broker, and what comes of it: one table, run by the tests and drawn in
docs/broker.md.

Law: a cell is `SAME` only if a test plays the scenario and finds what Kafka's own client would find
at Kafka's own broker; anything else is said in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SAME: Final = "same"
OURS: Final = "kafkawire"
KAFKA: Final = "Apache Kafka"
CLIENTS: Final = (OURS, "confluent-kafka", "kafka-python", "aiokafka", "kafkajs", "java")

SCENARIOS: Final = {
    "codecs": "produce with each codec, consume",
    "acks": "acks 0, 1, all; idempotent",
    "members": "two, three members come, one goes",
    "static": "a static member comes back",
    "cooperative": "a group moves partitions cooperatively",
    "commits": "a group goes on where it committed",
    "reset": "reset to earliest, latest",
    "steering": "seek, pause, resume",
    "refused": "a wrong password is told",
    "mixed": "a group together with members of ours",
}

DIFFERENT: Final[dict[tuple[str, str], str]] = {
    ("refused", "kafka-python"): "it tries until its own timeout",
    ("codecs", "kafkajs"): "none and gzip; it has no others itself",
    ("static", "kafkajs"): "it has none",
    ("cooperative", "kafkajs"): "it has none",
    ("mixed", "kafkajs"): "its assignor is known by no other client",
    ("cooperative", "kafka-python"): "it has none",
    ("cooperative", "aiokafka"): "it has none",
    ("steering", "java"): "the console tools have none",
}

SERVER: Final = "tests/net/server/test_produce_and_consume.py"
ELSEWHERE: Final[dict[str, str]] = {
    "codecs": f"{SERVER}::test_what_is_produced_with_a_codec_is_consumed",
    "acks": f"{SERVER}::test_acks",
    "members": f"{SERVER}::test_members_join_and_leave",
    "static": f"{SERVER}::test_a_static_member_that_comes_back_has_what_it_had",
    "cooperative": f"{SERVER}::test_members_join_and_leave",
    "commits": f"{SERVER}::test_a_group_goes_on_where_it_committed",
    "reset": f"{SERVER}::test_reset_policies",
    "refused": "tests/net/server/test_auth.py::test_who_has_not_is_told",
}
"""What clients of `tests.net.server.clients` play there against our broker."""
HERE: Final = frozenset({("refused", "aiokafka")})
"""... and what they do not."""


class Case(NamedTuple):
    """A scenario that is to be played here."""

    scenario: str
    client: str
    cluster: str

    def __str__(self) -> str:
        return f"{self.scenario}-{self.client}-{'kafka' if self.cluster == KAFKA else 'ours'}"


def pairs() -> Iterator[tuple[str, str]]:
    """Whose client with whose broker."""
    yield OURS, KAFKA
    for client in CLIENTS:
        yield client, OURS


def cases() -> Iterator[Case]:
    """What is played here."""
    for scenario in SCENARIOS:
        for client, cluster in pairs():
            different = DIFFERENT.get((scenario, client))
            if different is not None and not different.startswith("none and"):
                continue
            if scenario == "mixed" and client == OURS:
                continue
            if scenario in ELSEWHERE and client in CLIENTS[1:4] and (scenario, client) not in HERE:
                continue
            yield Case(scenario, client, cluster)


def drawn() -> str:
    """Draw the table."""
    found = list(pairs())
    rows = [
        ["", *(f"{client}, {cluster}" for client, cluster in found)],
        ["---"] * (len(found) + 1),
    ]
    for scenario, words in SCENARIOS.items():
        cells = [DIFFERENT.get((scenario, client), SAME) for client, _ in found]
        if scenario == "mixed":
            cells[0] = f"{SAME} (`tests/client/consumer/test_real.py`)"
            cells[1] = SAME
        rows.append([words, *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
