"""The memory of rules is bounded, and nothing that they count is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

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
