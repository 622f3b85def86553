"""Our own schemas, with a thing or two changed: refused with reasons, or fit to generate from."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkawire_codegen import model, schemas_dir, source
from kafkawire_codegen.evolution import compare
from kafkawire_codegen.render import render_message
from kafkawire_codegen.schema import MessageSchema, SchemaErrors, load_file, schema_files
from kafkawire_codegen.show import show
from tests.fuzzing import examples

FILES = schema_files(schemas_dir())
VALUES: list[Any] = [
    *("none", "", "0+", "2+", "0-1", "1", "null", "true", "0x7f", "-1", "2147483648", "x y"),
    *("int8", "string", "bytes", "records", "uuid", "bool", "[]int32", "[][]int8", "Topic", "[]"),
    *("request", "response", "coordinator-key", "brokerId", "topicName", "class", "A", "a"),
    *(0, 1, -1, 2**31, 1.5, True, False, None, [], {}, ["broker"], [{}], {"0+": "1"}),
]


def plain(node: source.Node) -> Any:
    if isinstance(node.value, dict):
        return {key: plain(member.node) for key, member in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def objects(value: Any) -> list[dict[str, Any]]:
    """Every object in a document, itself first."""
    inside = [
        objects(v)
        for v in (value.values() if isinstance(value, dict) else value)
        if isinstance(v, dict | list)
    ]
    own = [value] if isinstance(value, dict) else []
    return own + [o for part in inside for o in part]


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, str]:
    """One of our files by name, with one key of one of its objects set, removed or copied."""
    file = draw(st.sampled_from(FILES))
    node, _ = source.parse(file.read_text("utf-8"), file.name)
    document = plain(node)
    where = objects(document)
    target = draw(st.sampled_from(where))
    keys = sorted({key for o in where for key in o})
    for _ in range(draw(st.integers(1, 2))):
        key = draw(st.sampled_from(keys))
        match draw(st.sampled_from(["set", "remove", "copy"])):
            case "set":
                target[key] = draw(st.sampled_from(VALUES))
            case "remove":
                target.pop(key, None)
            case _:
                target[key] = copy.deepcopy(draw(st.sampled_from(where)).get(key))
    return file.name, json.dumps(document)


def original(name: str) -> MessageSchema:
    return load_file(schemas_dir() / name)


@settings(
    max_examples=examples(50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(mutations())
def test_a_changed_schema_is_refused_with_reasons_or_can_be_built(
    tmp_path: Path, mutation: tuple[str, str]
) -> None:
    name, text = mutation
    (tmp_path / name).write_text(text, "utf-8")
    try:
        schema = load_file(tmp_path / name)
    except SchemaErrors as refused:
        for error in refused.errors:
            assert error.line == 1
            assert 1 <= error.column <= len(text)
            assert error.reason
        return
    assert show(schema).text()
    compare([original(name)], [schema])
    if schema.valid_versions:
        compile(render_message(model.build(schema)).text, name, "exec")


@pytest.mark.parametrize("file", FILES[::25], ids=lambda f: f.stem)
def test_our_schemas_survive_being_written_again_by_another_hand(
    file: Path, tmp_path: Path
) -> None:
    node, _ = source.parse(file.read_text("utf-8"), file.name)
    again = tmp_path / file.name
    again.write_text(json.dumps(plain(node)), "utf-8")
    assert compare([load_file(file)], [load_file(again)]).text().startswith("0 added, 0 removed, 0")
