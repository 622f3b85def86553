"""Tables made in tasks have the rows of one process, wherever the tasks are cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.varied import capture as varied
from benchmarks.varied.cluster import Scale
from kafkawire.capture.exchanges import restoring
from kafkawire.capture.rows import Row
from kafkawire.capture.tables import TABLES
from tests.capture.tables.table_tasks import Split, whole
from tests.capture.written import Scenario
from tests.conftest import FIXTURES
from tests.recordings import ANY_CAPTURE, own, unchanged, variants

CAPTURES: Final = sorted((FIXTURES / "captures").glob("*.pcap*"))
TOGETHER: Final = (
    list(TABLES),
    ["records"],
    ["exchanges"],
    ["partitions"],
    ["group_events"],
    ["connections", "problems"],
    ["exchanges", "records"],
)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
@pytest.mark.parametrize("max_bytes", [1, 5000])
def test_rows_of_tasks_are_those_of_one_process(capture: Path, max_bytes: int) -> None:
    for tables in TOGETHER:
        split = Split([capture], tables, max_bytes)
        assert split.rows == whole([capture], tables)
        assert split.tasks > 1 or tables == ["group_events"] or max_bytes > 1


@pytest.mark.parametrize("listed", [unchanged, variants])
def test_rows_of_tasks_of_all_recordings(listed: Callable[[str], list[Path]]) -> None:
    for capture in listed(ANY_CAPTURE):
        split = Split([capture], list(TABLES), max(2000, capture.stat().st_size // 40))
        assert split.rows == whole([capture], list(TABLES)), capture


def test_rotated_files_are_one_capture() -> None:
    files = own("mixed-a--rot?.pcap")
    assert len(files) > 1
    assert Split(files, list(TABLES), 2000).rows == whole(files, list(TABLES))


OF_EXCHANGES: Final = ["exchanges", "partitions"]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of groups whose fetch sessions change."""
    capture = tmp_path_factory.mktemp("captures") / "varied.pcap"
    scale = Scale(topics=30, groups=10, producers=4, administrators=2)
    capture.write_bytes(b"".join(varied(1_500_000, seed=5, scale=scale)))
    return capture


@pytest.mark.parametrize("max_bytes", [2_000, 50_000])
def test_a_task_knows_the_fetch_sessions_of_earlier_tasks(sessions: Path, max_bytes: int) -> None:
    split = Split([sessions], OF_EXCHANGES, max_bytes)
    assert split.restored > 20
    assert any(row["in_session"] for row in split.rows["partitions"])
    assert split.rows == whole([sessions], OF_EXCHANGES)


def test_a_long_history_of_a_session_becomes_one_request(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "MAX_HISTORY", 2)
    shortened: list[int] = []
    make = restoring.restoring_request

    def counted(like: Row, id: int, *state: Any) -> Row:
        shortened.append(id)
        return make(like, id, *state)

    monkeypatch.setattr(restoring, "restoring_request", counted)
    assert Split([sessions], OF_EXCHANGES, 50_000).rows == whole([sessions], OF_EXCHANGES)
    assert shortened


def test_a_task_holds_messages_up_to_its_limit() -> None:
    capture = FIXTURES / "captures" / "fg-max-v0.11.0.pcap"
    few, many = (Split([capture], ["messages"], size).tasks for size in (20_000, 2_000))
    assert 1 < few < many


def test_a_task_has_few_rows_of_large_fetch_sessions(tmp_path: Path) -> None:
    """An exchange lists all of its session, however small its messages are."""
    scenario = Scenario()
    topics = [{"topic": "orders", "partitions": [{"partition": each} for each in range(1000)]}]
    scenario.request("Fetch", 12, sessionId=0, sessionEpoch=0, topics=topics)
    scenario.respond("Fetch", 12, sessionId=5)
    for epoch in range(1, 100):
        scenario.request("Fetch", 12, sessionId=5, sessionEpoch=epoch)
        scenario.respond("Fetch", 12, sessionId=5)
    file = scenario.save(tmp_path / "session.pcap")
    split = Split([file], ["exchanges", "partitions"], 500_000)
    assert split.tasks > 5
    assert Split([file], ["messages"], 500_000).tasks == 1
    assert len(split.rows["partitions"]) == 100_000
