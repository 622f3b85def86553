"""Collectors are called for what they need, and no more: calls are counted, at n and at 10n."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire import reports
from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located, Status
from kafkawire.capture.tables.extraction.entities import (
    ALL_KINDS,
    ERROR_CODES,
    GROUPS,
    NUMBER_FIELDS,
    THROTTLING,
    TOPICS,
    Entities,
    EntitySearch,
)
from kafkawire.reports.diagnosis.diagnosis import Diagnosis
from kafkawire.reports.diagnosis.registry import installed_rules
from kafkawire.reports.diagnosis.rule import Scene
from kafkawire.reports.readiness import dropped_by_kafka
from kafkawire.reports.reading import Collector, Reading
from kafkawire_cli.input.captures.progress import Progress
from kafkawire_cli.render.summary_report import Summary
from tests.calls import functions_called
from tests.capture.written import Scenario
from tests.cli.test_accounting import PATHS

FEW: Final = 20
REPORTS: Final = str(Path(reports.__file__).parent)


def reading(path: Path) -> Reading:
    return Reading(Traffic([path]), Progress(0))


def heartbeats(n: int, path: Path) -> Path:
    """Write a capture of so many accepted heartbeats."""
    scenario = Scenario()
    for _ in range(n):
        scenario.request("Heartbeat", 3, groupId="g", memberId="m", generationId=1)
        scenario.respond("Heartbeat", 3)
    return scenario.save(path)


def calls(read: Callable[[], None]) -> Counter[str]:
    """Count the calls of functions of reports, by qualified name."""
    functions = functions_called(read)
    return Counter(each.co_qualname for each in functions if each.co_filename.startswith(REPORTS))


def test_calls_of_a_summary_per_exchange(tmp_path: Path) -> None:
    """An exchange more takes its collectors' calls, and none of those it does not concern."""
    made = []
    for n in (FEW, 10 * FEW):
        summary = Summary(reading(heartbeats(n, tmp_path / f"{n}.pcap")))
        made.append(calls(summary.read))
    few, many = made
    more = {name: many[name] - few[name] for name in many if many[name] != few[name]}
    exchanges = 9 * FEW
    twice = ("Payload.row", "Silences.row")
    assert {name: more.pop(name) for name in twice} == dict.fromkeys(twice, 2 * exchanges)
    once = ("Clients.exchange", "Groups.exchange", "Apis.exchange", "Reporting.report")
    assert {name: more.pop(name) for name in once} == dict.fromkeys(once, exchanges)
    idle = {"Clients.row", "Problems.row", "Topics.row", "Groups.row", "Watermarks.exchange"}
    assert not idle & more.keys()
    assert sum(more.values()) <= 8 * exchanges, more


def test_calls_of_a_diagnosis_per_exchange(tmp_path: Path) -> None:
    """A fast response more is passed to the rules that need its latency, size or direction."""
    counts, rules = [], set[str]()
    for n in (FEW, 10 * FEW):
        captures = reading(heartbeats(n, tmp_path / f"{n}.pcap"))
        diagnosis = Diagnosis(Scene.of(captures, dropped_by_kafka()), installed_rules())
        counts.append(calls(diagnosis.read))
        rules = {type(one).__name__ for one in diagnosis.rules}
    few, many = counts
    more = {name: many[name] - few[name] for name in many if name.partition(".")[0] in rules}
    latencies = ("BrokerStalls", "NetworkLatency", "SlowBroker")
    methods = [f"{name}.responded" for name in latencies]
    methods += ["OneWayCaptures.exchange", "RejectedRequests.exchange"]
    assert {name: count for name, count in more.items() if count} == dict.fromkeys(methods, 9 * FEW)


SOME: Final = frozenset({Status.TRUNCATED, Status.GAP, Status.UNPARSED})


class Rows(Collector):
    """Counts the rows of some statuses."""

    statuses: frozenset[Status] | None = SOME

    def __init__(self) -> None:
        self.found: Counter[Status] = Counter()

    def row(self, found: Located) -> None:
        self.found[found.row.status] += 1


class AllRows(Rows):
    statuses = None


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_rows_of_some_statuses(path: Path) -> None:
    some, every = Rows(), AllRows()
    reading(path).read(some, every)
    assert some.found == {status: n for status, n in every.found.items() if status in SOME}


class Found(Collector):
    """Collects the entities of exchanges."""

    def __init__(self, kinds: frozenset[str]) -> None:
        self.kinds = kinds
        self.found: list[list[Any]] = []

    def exchange(self, exchange: Exchange, entities: Entities) -> None:
        of_kinds = [_of_kind(entities, kind) for kind in sorted(self.kinds)]
        self.found.append([exchange.main_row.packet, *of_kinds])


def _of_kind(entities: Entities, kind: str) -> Any:
    return entities.numbers.get(kind) if kind in NUMBER_FIELDS else list(getattr(entities, kind))


def collector(*kinds: str) -> Found:
    """Make a collector that says that it uses some kinds of entities."""
    cls = type("Some", (Found,), {"entities": frozenset(kinds)})
    made: Found = cls(frozenset(kinds))
    return made


@pytest.mark.parametrize("kinds", [(GROUPS,), (ERROR_CODES, THROTTLING), (TOPICS,)])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_entities_of_some_kinds(path: Path, kinds: tuple[str, ...]) -> None:
    """They are the same whether other messages, and other entities, are searched or not."""
    some, every = collector(*kinds), collector(*ALL_KINDS)
    every.kinds = some.kinds
    reading(path).read(some)
    reading(path).read(every)
    assert some.found == every.found


def test_messages_without_used_entities_are_not_searched(tmp_path: Path) -> None:
    path = heartbeats(1, tmp_path / "heartbeat.pcap")
    (exchange,) = exchanges_of(path)
    rows = [exchange.request, exchange.response]
    for kinds, fields in {
        (ERROR_CODES,): [[], ["error_code"]],
        (GROUPS,): [["group_id"], []],
        (TOPICS,): [[], []],
        (GROUPS, THROTTLING): [["group_id"], ["throttle_time_ms"]],
    }.items():
        search = EntitySearch(TopicNames(), lambda _: frozenset(kinds))  # noqa: B023
        found = [
            [field.attribute for field in search.places(row, row.message, 3).fields]
            for row in rows
            if row is not None and row.message is not None
        ]
        assert found == fields


def test_exchanges_without_entities_share_one_object(tmp_path: Path) -> None:
    """An object for each, with its dictionaries, took longer than all else in a search."""
    (exchange,) = exchanges_of(heartbeats(1, tmp_path / "heartbeat.pcap"))
    search = EntitySearch(TopicNames(), lambda _: frozenset({TOPICS}))
    nothing = search.entities(exchange.request, exchange.response)
    assert nothing is search.entities(None, None)
    found = EntitySearch(TopicNames(), lambda _: frozenset({GROUPS}))
    assert list(found.entities(exchange.request, exchange.response).groups) == ["g"]
    assert not found.entities(None, None).groups


def exchanges_of(path: Path) -> list[Exchange]:
    return list(reading(path).context.exchanges())
