"""The memory of rules is bounded, and nothing that they count is lost."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from pathlib import Path

import pytest

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.reports.diagnosis import Occurrences, Subject, Subjects
from kafkawire.reports.diagnosis.finding import MAX_PACKETS, OTHERS
from kafkawire.reports.diagnosis.rule import MAX_SUBJECTS

from .stories import Story, findings


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
    monkeypatch.setattr("kafkawire.reports.diagnosis.rule.MAX_SUBJECTS", 2)
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
    monkeypatch.setattr("kafkawire.reports.diagnosis.rule.MAX_SUBJECTS", 3)
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
