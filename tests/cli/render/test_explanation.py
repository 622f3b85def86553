"""Explanations of bytes on terminals: every line fits, names are whole, nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

import kafkawire
from kafkawire.display import text_width
from kafkawire.reference import explain
from kafkawire.reference.rendering import Explanation, hex_of, lines
from kafkawire.reference.samples import example
from kafkawire_cli.render.explanation.output import fitted
from kafkawire_codegen import model
from tests.cli.reports import on_a_terminal, run
from tests.recordings import recording
from tests.schemas import schemas

SGR = re.compile(r"\x1b\[[0-9;]*m")
MESSAGES = {schema.name: model.build(schema) for schema in schemas()}
KCAT = recording("kcat-kf.pcap")


def shown(explanation: Explanation, width: int) -> list[str]:
    return ["".join(span.text for span in line) for line in fitted(explanation, width)]


def joined(cells: Iterable[str]) -> str:
    """Join what is in a column, without spaces."""
    return "".join("".join(cells).split())


@pytest.mark.parametrize("name", MESSAGES)
def test_all_messages_fit_with_their_names_whole(name: str) -> None:
    rows = example(MESSAGES[name], MESSAGES[name].versions.high)
    for width in (80, 100, 140):
        text = list(fitted(Explanation(rows, (), None), width))
        columns: dict[str, list[str]] = {}
        for line in text:
            assert sum(text_width(span.text) for span in line) <= width
            for span in line:
                columns.setdefault(span.kind, []).append(span.text.strip())
        assert [field for field in columns["field"] if field] == [
            row.field for row in rows if row.field
        ]
        assert joined(columns["bytes"]) == joined(map(hex_of, rows))
        assert joined(columns["type"]) == joined(row.type for row in rows)
        assert joined(columns["value"]) == joined(row.value for row in rows)


def test_what_fits_is_as_in_a_pipe() -> None:
    explanation = explain("ApiVersionsRequest", 3, bytes.fromhex("0261026200"))
    assert list(fitted(explanation, 80)) == list(lines(explanation))


def test_as_many_bytes_are_on_a_line_as_break_fewest_words() -> None:
    message = kafkawire.from_json("DeleteTopicsRequest", 5, {"topicNames": ["n" * 14]})
    explanation = explain("DeleteTopicsRequest", 5, message.encode(5))
    for width, of_a_line in ((110, 14), (96, 14), (85, 8), (70, 6)):
        (words,) = (line.split() for line in shown(explanation, width) if "UTF-8" in line)
        assert words[1 : words.index("UTF-8")] == ["6e"] * of_a_line, width


def test_types_use_the_column_of_values_where_these_are_empty() -> None:
    message = kafkawire.from_json("MetadataRequest", 9, {"topics": [{"name": "n" * 14}]})
    text = shown(explain("MetadataRequest", 9, message.encode(9)), 80)
    assert [line.split() for line in text if "[0]" in line] == [
        ["1", "[0]", "MetadataRequestTopic"]
    ]


def test_the_note_is_below_the_invalid_byte() -> None:
    data = bytes.fromhex("20" + "61" * 13 + "ff" + "61" * 17)
    explanation = explain("ApiVersionsRequest", 3, data)
    text = shown(explanation, 70)
    (note,) = (number for number, line in enumerate(text) if "^" in line)
    assert text[note - 1][text[note].index("^") :].startswith("ff ")
    assert "the byte 0xff is not UTF-8" in " ".join(" ".join(text[note:]).split())
    assert max(map(len, text)) <= 70


@pytest.mark.parametrize("columns", [80, 100, 140])
@pytest.mark.parametrize("number", ["6", "24", "162"])
def test_captured_messages_fit_the_terminal(columns: int, number: str) -> None:
    given = ("explain", KCAT, "--packet", number)
    text = SGR.sub("", on_a_terminal(*given, columns=columns)).replace("\r\n", "\n")
    assert max(map(len, text.splitlines())) <= columns
    assert text.replace("\n", " ").split()[:2] == run(*given).stdout.split()[:2]
    without_colour = on_a_terminal(*given, columns=columns, NO_COLOR="1").replace("\r\n", "\n")
    assert [line.rstrip() for line in text.splitlines()] == without_colour.splitlines()


def test_a_pipe_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run("explain", KCAT, "--packet", "24").stdout
    assert "  00 00 00 00 00 00 00 00 00 00 00 4b … 75 more  " in text
    assert "19092  2026-11-21T04:10:20.642226000Z\n" in text
