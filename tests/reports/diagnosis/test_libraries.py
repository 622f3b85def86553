"""Names of settings in the libraries of the clients that a finding is about."""

from __future__ import annotations

import pytest

from kafkawire.reports.client import Client, Software
from kafkawire.reports.diagnosis import Confidence, Finding, Occurrences, Severity, Subject
from kafkawire.reports.diagnosis.libraries import Libraries

CONFLUENT = Software("confluent-kafka-python", "2.16.1-rdkafka-2.16.0")
JAVA = Software("apache-kafka-java", "4.4.0")
ADVICE = "Raise fetch.max.wait.ms."


def client(name: str, address: str, software: Software | None, group: str) -> Client:
    one = Client(name, address, software)
    one.groups[group] = None
    return one


CLIENTS = [
    client("a", "10.0.0.1", CONFLUENT, "mixed"),
    client("b", "10.0.0.2", JAVA, "mixed"),
    client("c", "10.0.0.1", CONFLUENT, "pure"),
    client("d", "10.0.0.1", None, "pure"),
]


@pytest.mark.parametrize(
    ("subject", "has_names"),
    [
        (Subject(client="a"), True),
        (Subject(client="b"), False),
        (Subject(client="d"), False),
        (Subject(group="mixed"), False),
        (Subject(group="pure"), True),
        (Subject(address="10.0.0.1"), True),
        (Subject(address="10.0.0.2"), False),
        (Subject(), False),
    ],
    ids=str,
)
def test_names_are_those_of_all_clients_concerned(subject: Subject, has_names: bool) -> None:
    finding = Finding(
        "rule", Severity.NOTICE, subject, "", Occurrences(), "", ADVICE, Confidence.LOW
    )
    names = " In librdkafka: fetch.wait.max.ms instead of fetch.max.wait.ms."
    assert Libraries(CLIENTS).with_names(finding).advice == ADVICE + names * has_names


def test_a_key_that_is_the_same_is_not_named() -> None:
    advice = "Raise fetch.min.bytes and socket.receive.buffer.bytes."
    subject = Subject(client="a")
    finding = Finding(
        "rule", Severity.NOTICE, subject, "", Occurrences(), "", advice, Confidence.LOW
    )
    assert Libraries(CLIENTS).with_names(finding).advice == advice
