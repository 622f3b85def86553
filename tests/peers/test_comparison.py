"""What suites say is read, and compared, as it was."""

from __future__ import annotations

import pytest

from . import comparison
from .comparison import KAFKA, OURS, REASONS, Difference, differences, drawn, written
from .outcomes import FAILED, PASSED, SKIPPED
from .suites import of_junit, of_test2json

RESULTS = {
    "suite": {
        KAFKA: {"a": PASSED, "b": PASSED, "c": FAILED, "d": PASSED, "e": SKIPPED},
        OURS: {"a": PASSED, "b": FAILED, "c": FAILED, "e": SKIPPED, "f": PASSED},
    }
}


def test_what_differs_or_fails_at_both_is_in_the_table() -> None:
    rows = {row.test: row for row in differences(RESULTS)}
    assert rows.keys() == {"b", "c", "d", "f"}
    assert {test for test, row in rows.items() if row.is_ours} == {"b", "d"}
    table = drawn(RESULTS)
    assert "| suite | Apache Kafka | 3 | 1 | 1 |" in table
    assert all(f"`{test}`" in table for test in rows)


def test_a_difference_with_a_reason_is_not_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Difference("suite", "b", PASSED, FAILED)
    assert row.is_ours
    monkeypatch.setattr(comparison, "REASONS", {**REASONS, ("suite", "b"): "because"})
    assert not row.is_ours
    assert "because" in drawn(RESULTS)


def test_the_page_keeps_the_rest() -> None:
    page = f"before\n{comparison.BEGIN}old\n{comparison.END}after\n"
    again = written(written(page, RESULTS), RESULTS)
    assert again.startswith("before\n")
    assert again.endswith("after\n")
    assert "old" not in again
    assert again.count("`b`") == 1


def test_rows_of_suites_that_were_not_run_stay() -> None:
    page = f"before\n{comparison.BEGIN}old\n{comparison.END}after\n"
    other = {"other": {KAFKA: {"x": PASSED, "y": PASSED}, OURS: {"x": PASSED, "y": SKIPPED}}}
    both = written(page, {**RESULTS, **other})
    assert both == written(written(page, RESULTS), other)
    assert both == written(both, other)
    assert "| other | `y` | passed | skipped |  |" in written(page, other)


def test_outcomes_of_junit() -> None:
    report = """<testsuites><testsuite>
        <testcase classname="test.one" name="passes[gzip]"/>
        <testcase classname="test.one" name="fails"><failure/></testcase>
        <testcase classname="test.one" name="has_no_broker"><error/></testcase>
        <testcase classname="test.two" name="is_skipped"><skipped/></testcase>
    </testsuite></testsuites>"""
    assert of_junit(report) == {
        "test/one.py::passes[gzip]": PASSED,
        "test/one.py::fails": FAILED,
        "test/one.py::has_no_broker": FAILED,
        "test/two.py::is_skipped": SKIPPED,
    }


def test_outcomes_of_go() -> None:
    lines = [
        '{"Action":"start"}',
        '{"Action":"run","Test":"TestA"}',
        '{"Action":"output","Test":"TestA","Output":"..."}',
        '{"Action":"pass","Test":"TestA","Elapsed":0.1}',
        '{"Action":"run","Test":"TestB"}',
        '{"Action":"skip","Test":"TestB"}',
        '{"Action":"run","Test":"TestHangs"}',
        '{"Action":"fail"}',
    ]
    assert of_test2json(lines) == {"TestA": PASSED, "TestB": SKIPPED, "TestHangs": FAILED}
