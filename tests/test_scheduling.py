"""How tests are handed to the processes of pytest-xdist."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.scheduling import CHUNK, MIN_UNITS, ChunkScheduling, Ids, share


class Scheduling(ChunkScheduling):
    """One whose process has collected tests."""

    def __init__(self, ids: list[str]) -> None:
        self.registered_collections = {"process": Ids(ids)}

    def units(self) -> Counter[str]:
        return Counter(map(self._split_scope, self.registered_collections["process"]))


def test_units_are_groups_and_chunks() -> None:
    grouped = [f"test_a.py::test[{at}]@kafka" for at in range(100)]
    others = [f"test_b.py::test[{at}@x]" for at in range(MIN_UNITS * CHUNK)]
    units = Scheduling(others[:CHUNK] + grouped + others[CHUNK:]).units()
    assert units["kafka"] == 100
    assert sum(units.values()) == 100 + MIN_UNITS * CHUNK
    assert MIN_UNITS < len(units) < MIN_UNITS + 10
    assert all(size <= CHUNK for unit, size in units.items() if unit != "kafka")


def test_a_few_tests_are_a_unit_each() -> None:
    assert set(Scheduling([f"test_b.py::test[{at}]" for at in range(46)]).units().values()) == {1}


def test_a_test_is_found_by_its_id() -> None:
    ids = Ids([f"test_b.py::test[{at}]" for at in range(100)])
    assert [ids.index(each) for each in ids] == list(range(100))


def test_each_module_is_imported_first_by_one_process() -> None:
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    shares = [share(files, f"gw{worker}", 3) for worker in range(3)]
    assert sorted(path for each in shares for path in each) == files
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
