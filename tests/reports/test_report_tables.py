"""Tables of reports: findings, lag and load over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkawire.capture.multifile import Traffic
from kafkawire.notebook.summary import Progress
from kafkawire.reports.reading import Reading
from kafkawire.reports.tables import REPORT_TABLES, lag, load, read_report_tables
from tests.cli.reports import report
from tests.conftest import FIXTURES
from tests.reports.diagnosis.stories import Story

MS = 10**6


def table(name: str, *paths: Path) -> list[dict[str, Any]]:
    """Read a table of captures; check its schema and its times."""
    captures = Reading(Traffic(list(paths)), Progress())
    batches = [batch for _, batch in read_report_tables(captures, [name])]
    schema = REPORT_TABLES[name].schema
    assert all(batch.schema == schema for batch in batches)
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, schema).to_pylist()
    return rows


def saved(story: Story, folder: Path) -> Path:
    return story.save(folder / "a.pcap")


def test_findings_are_those_of_diagnose() -> None:
    path = FIXTURES / "incidents" / "throttling.pcap.gz"
    expected = report("diagnose", path)["findings"]
    rows = table("findings", path)
    assert len(rows) == len(expected) > 1
    for row, one in zip(rows, expected, strict=True):
        assert [row[key] for key in ("rule", "severity", "what", "count", "filter")] == [
            one[key] for key in ("rule", "severity", "what", "count", "filter")
        ]
        assert row["client_id"] == one["subject"].get("client")
        assert row["cost_ns"] == one["cost"]["time_ns"]
        assert row["packets"] == one["packets"]
        assert row["settings"] == one["settings"]


def committing(*steps: tuple[int, int, float]) -> Story:
    """A group that commits an offset where the partition has an end offset, and then waits."""
    story = Story()
    for offset, end, seconds in steps:
        story.fetch(end=end).commit(offset).wait(seconds)
    return story


def test_lag_over_time(tmp_path: Path) -> None:
    rows = table("lag", saved(committing((10, 10, 100), (20, 120, 100), (30, 330, 0)), tmp_path))
    assert [(row["committed_offset"], row["end_offset"], row["lag"]) for row in rows] == [
        (10, 10, 0),
        (20, 120, 100),
        (30, 330, 300),
    ]
    assert {(row["group_id"], row["topic"], row["partition"]) for row in rows} == {
        ("billing", "orders", 0)
    }
    rates = [(row["consumed_per_second"], row["produced_per_second"]) for row in rows]
    assert rates[0] == (None, None)
    assert rates[1] == pytest.approx((0.1, 1.1), rel=0.01)
    assert rates[2] == pytest.approx((0.1, 2.1), rel=0.01)


def test_lag_of_several_commits_in_a_bucket(tmp_path: Path) -> None:
    story = committing((10, 500, 0.01), (490, 500, 1000), (500, 500, 0))
    first, last = table("lag", saved(story, tmp_path))
    assert (first["commits"], first["lag"], first["max_lag"]) == (2, 10, 490)
    assert (last["commits"], last["lag"], last["max_lag"]) == (1, 0, 0)


def test_lag_without_end_offsets_is_unknown(tmp_path: Path) -> None:
    (row,) = table("lag", saved(Story().commit(7).commit(8, code=25), tmp_path))
    assert (row["committed_offset"], row["end_offset"], row["lag"]) == (7, None, None)


def test_lag_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = committing(*[(offset, 1000, 0.05) for offset in range(100)])
    monkeypatch.setattr(lag, "MAX_CELLS", 10)
    rows = table("lag", saved(story, tmp_path))
    assert 1 <= len(rows) <= 10
    assert sum(row["commits"] for row in rows) == 100
    monkeypatch.setattr(lag, "MAX_PARTITIONS", 0)
    assert table("lag", saved(story, tmp_path)) == []


def loaded(rtt: float, *steps: tuple[str, float]) -> Story:
    """Requests of APIs with latencies, on a connection with a round-trip time to the broker."""
    story = Story()
    story.handshake = rtt, 0.001
    for api, latency in steps:
        if api == "Fetch":
            story.fetch(latency=latency)  # max_wait_ms is 500
        elif api == "JoinGroup":
            story.exchange("JoinGroup", 5, groupId="g", protocolType="consumer", latency=latency)
        else:
            story.exchange(api, 5, latency=latency)
    story.close()
    return story


PARTS = [
    ("Metadata", 0.099, 0.020, (20, 0, 80)),
    ("Metadata", 0.009, 0.020, (10, 0, 0)),
    ("Fetch", 0.499, 0.020, (20, 480, 0)),
    ("Fetch", 0.699, 0.020, (20, 500, 180)),
    ("JoinGroup", 2.999, 0.020, (20, 2980, 0)),
]
"""API, latency without a millisecond, round-trip time -> network, waiting and broker, in ms."""


@pytest.mark.parametrize(("api", "latency", "rtt", "parts"), PARTS)
def test_the_parts_of_a_latency(
    api: str, latency: float, rtt: float, parts: tuple[int, int, int], tmp_path: Path
) -> None:
    (row,) = table("load", saved(loaded(rtt, (api, latency)), tmp_path))
    names = "network_ns", "waited_ns", "broker_ns"
    assert tuple(row[name] for name in names) == tuple(part * MS for part in parts)
    assert row["latency_ns"] == sum(row[name] for name in names)
    assert (row["client_id"], row["broker"], row["api_name"]) == ("tester", "10.0.0.2:9092", api)


def test_load_without_a_handshake(tmp_path: Path) -> None:
    story = Story(opened=False).exchange("Metadata", 5, latency=0.099)
    (row,) = table("load", saved(story, tmp_path))
    assert (row["network_ns"], row["broker_ns"]) == (0, 100 * MS)


def totals(rows: list[dict[str, Any]]) -> dict[str, tuple[int, ...]]:
    """Add up the counts of each API."""
    found: dict[str, tuple[int, ...]] = {}
    for row in rows:
        before = found.get(row["api_name"], (0,) * 5)
        names = "requests", "responses", "errors", "request_bytes", "response_bytes"
        found[row["api_name"]] = tuple(
            count + row[name] for count, name in zip(before, names, strict=True)
        )
    return found


@pytest.mark.parametrize("bound", [load.MAX_CELLS, 5])
def test_load_adds_up(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "MAX_CELLS", bound)
    monkeypatch.setattr(load, "MAX_OPEN", bound)
    path = FIXTURES / "captures" / "ck-group-range.pcap"
    rows = table("load", path)
    calls = report("latency", path)["calls"]
    requests: dict[str, int] = {}
    for call in calls:
        requests[call["api_name"]] = requests.get(call["api_name"], 0) + call["requests"]
    assert {api: count for api, (count, *_) in totals(rows).items()} == requests
    assert all(row["latency_ns"] > 0 for row in rows if row["responses"])


def test_clients_beyond_the_bound_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "MAX_CLIENTS", 2)
    story = Story()
    for number in range(5):
        story.exchange("Metadata", 5, client_id=f"c{number}")
    requests: dict[str, int] = {}
    for row in table("load", saved(story, tmp_path)):
        requests[row["client_id"]] = requests.get(row["client_id"], 0) + row["requests"]
    assert requests == {"c0": 1, "c1": 1, "(others)": 3}
