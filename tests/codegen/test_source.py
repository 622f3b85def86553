"""JSON with comments: values as the standard library reads them, each at its place; errors too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire_codegen.source import DEEPEST, Node, SchemaErrors, parse


def plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: plain(member.node) for key, member in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def read(text: str) -> Node:
    node, stray = parse(text, "f.json")
    assert stray is None
    return node


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_values_are_those_the_standard_library_reads(
    value: Any, indent: int | str | None, escaped: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert plain(read(text)) == json.loads(text)


@given(json_values, st.data())
def test_a_text_cut_anywhere_is_refused_at_a_place_within_it(
    value: Any, data: st.DataObject
) -> None:
    text = json.dumps([value], indent=1)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(SchemaErrors) as caught:
        read(cut)
    (error,) = caught.value.errors
    assert error.rule == "syntax"
    lines = cut.split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1


@given(st.text(st.sampled_from('{}[]:,"\\/*tru1-. \n'), max_size=24))
def test_any_text_is_read_as_the_standard_library_does_or_refused(text: str) -> None:
    try:
        node, stray = parse(text, "f.json")
    except SchemaErrors:
        with pytest.raises(ValueError):
            json.loads(text)
        return
    if "/" not in text and stray is None:
        assert plain(node) == json.loads(text)


TEXT = """// licence
{ /* a
     comment */ "a": [1, // one
    "x/*y*/",   true],
  "b": {"c": null } }
// end"""


def test_comments_are_skipped_and_what_looks_like_one_in_a_string_is_not() -> None:
    assert plain(read(TEXT)) == {"a": [1, "x/*y*/", True], "b": {"c": None}}


def test_every_value_and_key_knows_its_line_and_column() -> None:
    node = read(TEXT)
    a, b = node.members["a"], node.members["b"]
    locations = [
        node.location,
        a.key_location,
        a.node.location,
        *(n.location for n in a.node.items),
    ]
    locations += [b.key_location, b.node.location, b.node.at("c"), b.node.at("absent")]
    assert [(p.line, p.column) for p in locations] == [
        (2, 1),
        (3, 17),
        (3, 22),
        (3, 23),
        (4, 5),
        (4, 17),
        (5, 3),
        (5, 8),
        (5, 14),
        (5, 8),
    ]
    assert {p.file for p in locations} == {"f.json"}


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("", 1, 1, "the text ends; expected a value"),
        ("// only\n", 2, 1, "the text ends; expected a value"),
        ('{"a": 1', 1, 8, "the text ends; expected ',' or '}' after a value"),
        ('{"a" 1}', 1, 6, "expected ':' after a key"),
        ('{"a": 1,}', 1, 8, "trailing comma before '}'"),
        ('{"a": 1, 2: 3}', 1, 10, "expected a key in double quotes"),
        ("{a: 1}", 1, 2, "'a' is not the start of a JSON value"),
        ("[1 2]", 1, 4, "expected ',' or ']' after an element"),
        ("[1,\n]", 1, 3, "trailing comma before ']'"),
        ("[1,}", 1, 4, "expected a value, not '}'"),
        ("[01]", 1, 2, "'0' is not the start of a JSON value"),
        ("[NaN]", 1, 2, "'N' is not the start of a JSON value"),
        ("[\n'a']", 2, 1, "strings need double quotes"),
        (
            '["a\nb"]',
            1,
            2,
            "the string is not closed on its line, or has an invalid escape",
        ),
        (
            r'["\x41"]',
            1,
            2,
            "the string is not closed on its line, or has an invalid escape",
        ),
        ("[1] /* open", 1, 5, "unclosed comment: */ is missing"),
        ("{} {}", 1, 4, "unexpected text after the document"),
        ("[" * (DEEPEST + 2), 1, DEEPEST + 2, f"more than {DEEPEST} levels of nesting"),
    ],
)
def test_invalid_json_is_an_error_at_its_character(
    text: str, line: int, column: int, reason: str
) -> None:
    with pytest.raises(SchemaErrors) as caught:
        parse(text, "f.json")
    (error,) = caught.value.errors
    assert (error.line, error.column, error.reason) == (line, column, reason)


def test_deep_nesting_up_to_the_limit_is_read() -> None:
    assert read("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1)).items


def test_a_repeated_key_keeps_its_first_value_and_reports_a_different_second() -> None:
    node = read('{"a": 1, "a": 1,\n "a": true, "b": [], "b": []}')
    assert plain(node) == {"a": 1, "b": []}
    assert [(r.key, r.same, r.again.line) for r in node.repeated] == [
        ("a", True, 1),
        ("a", False, 2),
        ("b", False, 2),
    ]


def test_brackets_too_many_at_the_end_are_pointed_at() -> None:
    node, stray = parse("{}\n }]", "f.json")
    assert plain(node) == {}
    assert stray is not None
    assert (stray.line, stray.column) == (2, 2)
