"""Tables and lines in the width of a terminal: what is wrapped, left out and cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.display import text_width
from kafkawire_cli.render.fitting import (
    Column,
    chosen,
    fitted_line,
    fitted_table,
    widths,
    wrapped,
)
from tests.cli.reports import on_a_terminal, run
from tests.recordings import recording

SGR = re.compile(r"\x1b\[[0-9;]*m")
SOFTWARE = "confluent-kafka-python 2.16.1-rdkafka-2.16.0"
TABLE = (
    Column(("member", "cons-A", "cons-B")),
    Column(("software", SOFTWARE, SOFTWARE)),
    Column(("commits", "1", "12"), is_number=True),
)


def table(width: int) -> list[str]:
    """Format the table in a width."""
    return list(fitted_table(TABLE, width, str))


def test_a_table_that_fits_is_not_wrapped() -> None:
    whole = 6 + 2 + len(SOFTWARE) + 2 + 7
    assert [line.split() for line in table(whole)] == [
        ["member", "software", "commits"],
        ["cons-A", *SOFTWARE.split(), "1"],
        ["cons-B", *SOFTWARE.split(), "12"],
    ]
    assert len(table(whole - 1)) == 5


def test_cells_are_wrapped_at_spaces_and_numbers_not_at_all() -> None:
    assert table(40)[1:3] == [
        "cons-A  confluent-kafka-python         1",
        "        2.16.1-rdkafka-2.16.0",
    ]


def test_optional_columns_are_left_out_before_a_word_breaks() -> None:
    words = 6 + 2 + len("confluent-kafka-python") + 2 + 7
    assert chosen(TABLE, [1], words) == [0, 1, 2]
    assert chosen(TABLE, [1], words - 1) == [0, 2]
    assert chosen(TABLE, [], words - 1) == [0, 1, 2]
    assert chosen(TABLE, [2, 1], words - 1) == [0, 1]


def test_the_rest_of_a_width_goes_to_the_columns_that_need_least() -> None:
    columns = (Column(("a b c",)), Column(("one two three four five",)))
    assert widths(columns, 5 + 2 + 8) == [5, 8]


def test_the_text_of_a_label_stays_aligned() -> None:
    assert list(fitted_line("requests: Fetch v16, Metadata v13", 22)) == [
        "requests: Fetch v16,",
        "          Metadata v13",
    ]


WORDS = st.text(alphabet="ab世 -", max_size=30)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.integers(10, 60))
def test_no_line_is_wider_and_nothing_is_lost(rows: list[tuple[str, str, str]], width: int) -> None:
    columns = [Column(("x", *cells)) for cells in zip(*rows, strict=True)]
    lines = list(fitted_table(columns, width, str))
    assert max(map(text_width, lines)) <= width
    shown, given_ = "".join(lines), "".join(cell for row in rows for cell in row)
    for character in "ab世-":
        assert shown.count(character) == given_.count(character)


# -- on terminals

MIXED = recording("mixed-a.pcap")
GROUP = recording("ck-group-range.pcap")
BROKEN = recording("kjs-all.pcap")
REPORTS = {
    "summary": ("summary", MIXED),
    "latency": ("latency", MIXED, "--by", "client", "--all"),
    "topics": ("topics", MIXED),
    "clients": ("clients", GROUP),
    "groups": ("groups", MIXED),
    "readiness": ("readiness", MIXED, "--target", "4.0"),
    "transactions": ("transactions", recording("ck-txn.pcap")),
}


@pytest.mark.parametrize("columns", [80, 100, 140])
@pytest.mark.parametrize("arguments", REPORTS.values(), ids=REPORTS)
def test_reports_break_no_word(arguments: tuple[object, ...], columns: int) -> None:
    shown = SGR.sub("", on_a_terminal(*arguments, columns=columns, PYTHONUNBUFFERED="1"))
    lines = shown.replace("\r\n", "\n").splitlines()
    assert max(map(text_width, lines)) <= columns
    wide = SGR.sub("", on_a_terminal(*arguments, columns=400)).split()
    narrow = [line for line in lines if not line.startswith("  Not shown, for want of width")]
    assert {word for line in narrow for word in line.split()} <= set(wide)


def test_members_of_a_group_have_a_line_each_at_80_columns() -> None:
    shown = SGR.sub("", on_a_terminal("groups", GROUP, columns=80)).replace("\r\n", "\n")
    members = shown.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in members] == ["member", "cons-A", "cons-B", "Not"]
    assert "software" in members[-1]


def test_unbuffered_output_has_the_width_of_the_terminal() -> None:
    wide = on_a_terminal("decode", GROUP, columns=140)
    assert on_a_terminal("decode", GROUP, columns=140, PYTHONUNBUFFERED="1") == wide
    assert max(map(len, SGR.sub("", wide).splitlines())) > 100


@pytest.mark.parametrize("columns", [80, 100])
def test_headings_of_trees_fit_and_are_whole(columns: int) -> None:
    shown = on_a_terminal("decode", "--records", GROUP, columns=columns).replace("\r\n", "\n")
    in_pipe = run("decode", "--records", "--format", "tree", GROUP).stdout
    heading = re.compile(r"^  \S+\s+packet \d+(?:\s+\S+){4}$", re.MULTILINE)
    whole = [each.split() for each in heading.findall(in_pipe)]
    assert [each.split() for each in heading.findall(shown)] == whole
    assert max(len(line) for each in heading.findall(shown) for line in each.split("\n")) <= columns
    assert len(whole) > 100
    assert heading.findall(in_pipe)[0].count("\n") == 0


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_errors_of_messages_are_whole(columns: int) -> None:
    shown = SGR.sub("", on_a_terminal("decode", GROUP, BROKEN, columns=columns))
    lines = shown.replace("\r\n", "\n").splitlines()
    assert max(map(text_width, lines)) <= columns
    assert sum("REBALANCE_IN_PROGRESS" in line for line in lines) == 2
    [error] = [line for line in lines if "LeaveGroupResponse.members" in line]
    assert error.endswith("4 bytes wanted, 0 left (at byte 10)]")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("width", [-3, 0, 1, 2, 4, 5])
@pytest.mark.parametrize("text", ["explains a request", "\u4e16\u754c \u4e16\u754c", "   x"])
def test_text_is_wrapped_however_narrow_the_terminal_is(text: str, width: int) -> None:
    lines = list(wrapped(text, width, 4))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(text_width(line) <= max(width, 2) for line in lines)
