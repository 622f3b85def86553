"""The memory of rules is bounded, and nothing that they count is lost."""

from __future__ import annotations

import gc
from collections import deque
from functools import partial
from itertools import permutations
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.multifile import Traffic
from kafkawire.reports.diagnosis import Occurrences, Subject, Subjects
from kafkawire.reports.diagnosis.diagnosis import Diagnosis
from kafkawire.reports.diagnosis.finding import MAX_PACKETS, OTHERS
from kafkawire.reports.diagnosis.registry import installed_rules
from kafkawire.reports.diagnosis.rule import MAX_SUBJECTS, Scene
from kafkawire.reports.readiness import dropped_by_kafka
from kafkawire.reports.reading import Reading

from .stories import Story, batch, findings


def test_subjects_beyond_the_bound_are_counted_together() -> None:
    subjects = Subjects(Occurrences)
    for number in range(MAX_SUBJECTS + 500):
        subjects.of(Subject(client=f"c{number}")).add_at(number, number)
    counts = {subject: seen.count for subject, seen in subjects}
    assert len(counts) == MAX_SUBJECTS + 1
    assert counts[OTHERS] == 500
    subjects.of(Subject(client="c0")).add_at(1, 1)
    assert dict(subjects)[Subject(client="c0")].count == 2


def test_a_finding_names_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkawire.reports.diagnosis.subjects.MAX_SUBJECTS", 2)
    story = Story()
    for number in range(5):
        story.fetch(code=1, client_id=f"c{number}")
    counts = {one["subject"]["client"]: one["count"] for one in findings(story, tmp_path)}
    assert counts == {"c0": 1, "c1": 1, "(others)": 3}


def test_few_packets_are_kept_of_many() -> None:
    seen = Occurrences()
    for packet in range(1000):
        seen.add_at(packet, packet, 10, 3)
    assert seen.packets == list(range(MAX_PACKETS))
    assert (seen.last_packet, seen.count, seen.bytes, seen.time_ns) == (999, 1000, 10_000, 3000)


def test_keys_of_subjects_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys beyond the bound are looked up by their subjects, and have the same states."""
    monkeypatch.setattr("kafkawire.reports.diagnosis.subjects.MAX_SUBJECTS", 3)
    subjects: Subjects[list[int]] = Subjects(list)
    for at in [*range(9), *range(9)]:
        subjects.of_key(at, partial(Subject, client=str(at // 2))).append(at)
    states = dict(subjects)
    assert {one.client: len(state) for one, state in states.items()} == {
        "0": 4, "1": 4, "2": 4, OTHERS.client: 6
    }  # fmt: skip
    assert len(subjects._by_key) == 3


@pytest.mark.parametrize("times", list(permutations((NO_TIME, 5, 7, 9))))
def test_first_and_last_times_in_any_order(times: tuple[int, ...]) -> None:
    seen = Occurrences()
    for packet, at_ns in enumerate(times):
        seen.add_at(packet, at_ns)
    assert (seen.first_ns, seen.last_ns, seen.count) == (5, 9, 4)


class Progress:
    packets = bytes = 0
    again = False


def entries(path: Path) -> int:
    """Count the entries of all containers that the collectors of a diagnosis hold at its end."""
    captures = Reading(Traffic([path]), Progress())
    scene = Scene.of(captures, dropped_by_kafka())
    collectors = Diagnosis(scene, installed_rules()).all_collectors
    captures.read(*collectors)
    seen = {id(captures), id(captures.traffic), id(captures.context)}
    count, level = 0, list[object](collectors)
    while level:
        each = level.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType):
            continue
        seen.add(id(each))
        count += len(each) if isinstance(each, dict | list | set | deque) else 0
        level += gc.get_referents(each)
    return count


def traffic(rounds: int, path: Path) -> Path:
    """Traffic of the same clients, with troubles of many rules, of so many rounds."""
    story = Story()
    for at in range(rounds):
        story.produce(batch(), code=6 * (at % 3 == 0), acks=at % 2)
        story.fetch(code=at % 2).commit(at, code=27 * (at % 2))
        story.join(at, member="m").leave(member="m")
        story.exchange("Metadata", 1, response={"topics": [{"name": "orders", "errorCode": 3}]})
        story.request("ListOffsets", 1, 1, client_id="silent")
        story.exchange("OffsetFetch", 1, 2, groupId="g", latency=7)
    story.save(path)
    return path


def test_memory_does_not_grow_with_messages(tmp_path: Path) -> None:
    few, many = (entries(traffic(rounds, tmp_path / f"{rounds}.pcap")) for rounds in (20, 200))
    assert many - few < 50
