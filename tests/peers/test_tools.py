"""Calls of tools are read from their table, and what differs from run to run is not compared."""

from __future__ import annotations

import pytest

from . import calls_of_kadm
from .comparison import KAFKA, OURS, compared, unlike
from .outcomes import FAILED, PASSED
from .tools.calls import TOOLS, calls, scenarios
from .tools.sweep import Result, normalised


def test_every_call_is_of_a_tool_and_has_a_name_of_its_own() -> None:
    rows = [call for name, lines in scenarios().items() for call in calls(name, lines)]
    assert {call.tool for call in rows} == TOOLS.keys()
    assert len({call.name for call in rows}) == len(rows) > 100


def test_a_line_is_a_call() -> None:
    first, again = calls("s", ["kafka-topics --topic 'a b' < x\\ty\\n"] * 2)
    assert (first.name, again.name) == (
        "s: kafka-topics --topic 'a b' < x\\ty\\n",
        "s: kafka-topics --topic 'a b' < x\\ty\\n (2)",
    )
    assert (first.arguments, first.stdin) == (("--topic", "a b"), "x\ty\n")
    assert first.main == "org.apache.kafka.tools.TopicCommand"
    assert first.at("h:1") == ("--bootstrap-server", "h:1", "--topic", "a b")
    [last] = calls("s", ["kafka-cluster cluster-id"])
    assert last.at("h:1") == ("cluster-id", "--bootstrap-server", "h:1")


@pytest.mark.parametrize(
    ("printed", "comparable"),
    [
        ("b\n\n  a\n", "a\nb"),
        ("TopicId: l1VhXkUnR_aQb8kZx-3M4w at 127.0.0.1:9092", "TopicId: UUID at HOST:PORT"),
        ("VoterNotFoundException", "VoterNotFoundException"),
        ("Error\n\tat a.b.C.d(C.java:1)\n\t... 10 more\n", "Error"),
        ("Valid states are: Stable, Empty", "Valid states are: Empty,Stable"),
        ("HighWatermark:   431", "HighWatermark: N"),
        ("1 \tUUID\t431 \t0 \t5 ms ago", "1 \tUUID\tN \t0 \tN ms ago"),
        ("50 records sent, 3.5 records/sec", "50 records sent, FIGURES"),
        (
            '{"name":"records_consumed","count":2,"partitions":[{"count":1},{"count":1}]}\n'
            '{"name":"offsets_committed","offsets":[]}\n'
            '{"name":"records_consumed","count":3,"partitions":[{"count":3}]}\n',
            "offsets_committed: 0\nrecords_consumed: 5",
        ),
    ],
)
def test_what_differs_from_run_to_run_is_replaced(printed: str, comparable: str) -> None:
    result = Result(exit=3, out=printed, err="")
    assert normalised(result) == f"exit code 3\n{comparable}"


def test_ours_fails_the_calls_with_another_result() -> None:
    kafka, ours = {"a": "exit code 0\nx", "b": "exit code 0"}, {"a": "exit code 0\ny"}
    assert compared(kafka, kafka)[OURS] == {"a": PASSED, "b": PASSED}
    assert compared(kafka, ours) == {
        KAFKA: {"a": PASSED, "b": PASSED},
        OURS: {"a": FAILED, "b": FAILED},
    }
    assert list(unlike(kafka, kafka)) == []
    assert [line for line in unlike(kafka, ours) if line[0] in "-+"] == [
        "-x\n",
        "+y\n",
        "-exit code 0\n",
        "+not run\n",
    ]


def test_results_of_kadm_are_compared_in_any_order() -> None:
    lines = (
        '{"call": "C", "result": [{"ID": "AAAAAAAAAAAAAAAAAAAAAAA=", "Port": 1}, {"b": 2}]}',
        '{"call": "C", "result": [{"b": 2}, {"ID": "BAAAAAAAAAAAAAAAAAAAAAA=", "Port": 2}]}',
    )
    first, second = map(calls_of_kadm.result, lines)
    assert first == second
    assert first[0] == "C"
    assert '"b": 2' in first[1]
