"""The `findings` table: what is wrong, one row per finding, the most harmful first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkawire.capture.tables.columns import (
    INT32,
    INT64,
    TEXT,
    TIME,
    Column,
    Columns,
    known,
    list_of,
    micros,
    struct_of,
)

from ..diagnosis.diagnosis import Diagnosis
from ..diagnosis.finding import ResolvedFinding
from ..diagnosis.registry import UNCHANGED, Settings, installed_rules
from ..diagnosis.rule import Scene
from ..readiness import dropped_by_kafka
from ..reading import Collector, Reading

COLUMNS: Final[Columns] = (
    Column("rule", TEXT, "The rule that reports it ([rules](diagnose.md#the-rules))."),
    Column("severity", TEXT, "`critical`, `warning` or `notice`."),
    Column("client_id", TEXT, "Client id of the client that it is about."),
    Column("client_address", TEXT, "Its address, if it matters or there is no client id."),
    Column("group_id", TEXT, "Group id."),
    Column("group_instance_id", TEXT, "Group instance id."),
    Column("transactional_id", TEXT, "Transactional id."),
    Column("topic", TEXT, "Topic."),
    Column("partition", INT32, "Partition."),
    Column("broker", TEXT, "Address and port of the broker."),
    Column("broker_id", INT32, "Id of the broker."),
    Column("api_name", TEXT, "Name of the API."),
    Column("what", TEXT, "What is wrong."),
    Column("count", INT64, "How often it was seen."),
    Column("first_time", TIME, "When it was seen first."),
    Column("first_time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("last_time", TIME, "When it was seen last."),
    Column("last_time_ns", INT64, "The same in nanoseconds since the epoch."),
    Column("cost_ns", INT64, "The time that it cost."),
    Column("cost_bytes", INT64, "The bytes that it cost."),
    Column(
        "packets",
        list_of(struct_of(file=TEXT, packet=INT64)),
        "The first packets that show it, and the last one.",
    ),
    Column("filter", TEXT, "Selects its messages, for `decode --filter`."),
    Column("cause", TEXT, "The likely cause."),
    Column("advice", TEXT, "What to look at or change."),
    Column(
        "settings",
        list_of(struct_of(key=TEXT, value=TEXT)),
        "Configuration keys, and their values as seen in the capture.",
    ),
    Column("reference", TEXT, "KIP, RFC or release."),
    Column("confidence", TEXT, "`high`, `medium` or `low`."),
)


class Findings:
    """Collects the findings about a capture. Raises RuleError for rules that cannot be used."""

    def __init__(self, captures: Reading, settings: Settings = UNCHANGED) -> None:
        scene = Scene.of(captures, dropped_by_kafka())
        self._diagnosis = Diagnosis(scene, installed_rules(), settings)

    @property
    def collectors(self) -> Sequence[Collector]:
        """What collects the findings while the capture is read."""
        return self._diagnosis.all_collectors

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Build the rows of the table, at the end of the capture."""
        return map(_row, self._diagnosis.findings)


def _row(one: ResolvedFinding) -> tuple[Any, ...]:
    finding, subject, seen = one.finding, one.subject, one.finding.seen
    return (
        finding.rule,
        finding.severity.value,
        subject.get("client"),
        subject.get("address"),
        subject.get("group"),
        subject.get("group_instance_id"),
        subject.get("transactional_id"),
        subject.get("topic"),
        subject.get("partition"),
        subject.get("broker"),
        subject.get("broker_id"),
        subject.get("api"),
        finding.what,
        seen.count,
        micros(seen.first_ns),
        known(seen.first_ns),
        micros(seen.last_ns),
        known(seen.last_ns),
        seen.time_ns,
        seen.bytes,
        [{"file": file, "packet": packet} for file, packet in one.packets],
        one.expression or None,
        finding.cause,
        finding.advice,
        [setting._asdict() for setting in finding.settings],
        finding.reference or None,
        finding.confidence.value,
    )
