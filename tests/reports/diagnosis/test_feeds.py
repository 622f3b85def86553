"""What feeds pass to rules: late responses, and the partitions of Fetch exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.capture.exchanges.topic_ids import ZERO, TopicNames, topic_key
from kafkawire.capture.multifile import Traffic
from kafkawire.reports.diagnosis import Exchange, Fetched, Finding, Rule
from kafkawire.reports.diagnosis.diagnosis import Diagnosis
from kafkawire.reports.diagnosis.fetched import PartitionAt
from kafkawire.reports.diagnosis.rule import Scene
from kafkawire.reports.readiness import dropped_by_kafka
from kafkawire.reports.reading import Reading

from .stories import Story


class Progress:
    packets = bytes = 0
    again = False


class Watching(Rule):
    """Notes what it is called with."""

    name = "watching"
    description = "It watches."
    least_latency_ns = 2_000_000_000
    latencies: list[int]
    partitions: list[PartitionAt]

    def responded(self, exchange: Exchange, latency_ns: int) -> None:  # noqa: ARG002
        self.latencies.append(latency_ns // 1_000_000_000)

    def fetched(self, fetched: Fetched) -> None:
        for partition, _ in [*fetched.requested, *fetched.partitions]:
            self.partitions.append(partition)

    def findings(self) -> Iterator[Finding]:
        return iter(())


def watched(story: Story, folder: Path) -> Watching:
    """Return what a rule sees of a story."""
    captures = Reading(Traffic([story.save(folder / "story.pcap")]), Progress())
    diagnosis = Diagnosis(Scene.of(captures, dropped_by_kafka()), {"watching": Watching})
    (rule,) = diagnosis.rules
    assert isinstance(rule, Watching)
    rule.latencies, rule.partitions = [], []
    diagnosis.read()
    return rule


def test_a_rule_gets_responses_from_its_latency_on(tmp_path: Path) -> None:
    story = Story()
    for seconds in (1, 2, 0, 3):
        story.exchange("Metadata", 1, latency=seconds)
    assert watched(story, tmp_path).latencies == [2, 3]


def test_a_partition_has_one_state_in_all_fetches(tmp_path: Path) -> None:
    story = Story().fetch().fetch(topic="payments").fetch()
    states = watched(story, tmp_path).partitions
    assert [state.topic for state in states] == ["orders"] * 2 + ["payments"] * 2 + ["orders"] * 2
    assert len({id(state) for state in states}) == 2


def test_states_of_partitions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkawire.reports.diagnosis.fetched.MAX_SUBJECTS", 1)
    story = Story().fetch().fetch(topic="payments").fetch()
    states = watched(story, tmp_path).partitions
    assert len({id(state) for state in states if state.topic == "orders"}) == 1
    assert len({id(state) for state in states if state.topic == "payments"}) == 2


@pytest.mark.parametrize("name", [None, "", "orders"])
@pytest.mark.parametrize("topic_id", [None, ZERO, bytes(range(16))])
def test_the_key_of_a_topic_is_that_of_its_names(name: str | None, topic_id: bytes | None) -> None:
    assert topic_key(name, topic_id) == TopicNames().topic(name, topic_id).key
