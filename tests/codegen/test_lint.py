"""Every rule refuses what it must, at the place where it stands, and nothing else."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

from kafkawire_codegen import model, schemas_dir
from kafkawire_codegen.lint import Report, lint, rules_text
from kafkawire_codegen.render import render, render_message
from kafkawire_codegen.rules import ADVICE, RULES
from kafkawire_codegen.rules.names import wrong_class_name, wrong_message_name
from kafkawire_codegen.schema import SchemaErrors, load_directory, load_file

from .faults import FAULTS, MARK, Fault


def lay_out(directory: Path, files: dict[str, str]) -> list[tuple[str, int, int]]:
    """Write files without their marks; return where the marks were, as file, line, column."""
    places = []
    for name, text in files.items():
        while MARK in text:
            before, _, after = text.partition(MARK)
            line = before.count("\n") + 1
            places.append((str(directory / name), line, len(before.rpartition("\n")[2]) + 1))
            text = before + after
        (directory / name).write_text(text, "utf-8")
    return places


def all_of(report: Report) -> list[tuple[str, str, int, int]]:
    return [(e.rule, e.file, e.line, e.column) for e in (*report.errors, *report.advice)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.rule)
def test_a_rule_finds_its_fault_at_its_place_and_nothing_else(fault: Fault, tmp_path: Path) -> None:
    places = lay_out(tmp_path, fault.files)
    report = lint(tmp_path)
    assert all_of(report) == [(fault.rule, *place) for place in places]
    assert (report.advice or report.errors)[0].path == fault.path
    assert bool(report.advice) == (fault.rule in ADVICE)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.rule)
def test_loading_refuses_faults_and_lets_advice_pass(fault: Fault, tmp_path: Path) -> None:
    lay_out(tmp_path, fault.files)
    if fault.rule in ADVICE:
        assert load_directory(tmp_path)
        return
    with pytest.raises(SchemaErrors) as caught:
        load_directory(tmp_path)
    assert {error.rule for error in caught.value.errors} == {fault.rule}


def test_every_rule_has_a_fault_that_only_it_finds() -> None:
    assert {fault.rule for fault in FAULTS} == set(RULES)


def test_advice_is_part_of_the_rules() -> None:
    assert set(RULES) >= ADVICE


def test_each_fault_is_marked() -> None:
    assert all(MARK in "".join(fault.files.values()) for fault in FAULTS)


def test_all_errors_of_a_file_are_reported_in_text_order(tmp_path: Path) -> None:
    text = """{
      "name": "M", "type": "data", "validVersions": "0-3", "flexibleVersions": §"2-3",
      "fields": [
        { "name": "A", "type": §"int23", "versions": "0+" },
        { "name": "B", "type": "int8", "versions": §"everywhere", "default": §"300" },
        { "name": §"a", "type": "[]S", "versions": "0+", §"nulable": "0+", "fields": [
          { "name": "C", "type": "uuid", "versions": "0+", "nullableVersions": §"0+" }
        ]}
      ]
    }"""
    places = lay_out(tmp_path, {"M.json": text})
    report = lint(tmp_path / "M.json")
    assert [(e.file, e.line, e.column) for e in report.errors] == places
    assert [e.rule for e in report.errors] == [
        "flexible-versions-closed",
        "unknown-type",
        "ill-formed-versions",
        "default-out-of-range",
        "duplicate-field",
        "unknown-key",
        "nullable-type",
    ]


def test_all_errors_of_several_files_are_reported(tmp_path: Path) -> None:
    lay_out(tmp_path, {"A.json": "{", "B.json": "[]", "C.json": '{ "name": 1 }'})
    report = lint(tmp_path)
    assert report.messages == 1
    assert {Path(e.file).name for e in report.errors} == {"A.json", "B.json", "C.json"}


def test_a_consequence_is_not_reported_with_its_cause(tmp_path: Path) -> None:
    field = '{ "name": "A", "type": "int8", "versions": "0+", "taggedVersions": "x+", "tag": 0 }'
    text = f'{{ "name": "M", "type": "data", "validVersions": "0", "fields": [{field}] }}'
    (tmp_path / "M.json").write_text(text)
    assert [e.rule for e in lint(tmp_path).errors] == ["ill-formed-versions"]


RESPONSE = (
    '{ "name": "PingResponse", "type": "response", "apiKey": 900, "validVersions": "0", '
    '"flexibleVersions": "none", "fields": [] }'
)


@pytest.mark.parametrize(
    ("request_text", "error"),
    [
        (RESPONSE.replace("Response", "Request").replace("[]", "[1,]"), "trailing comma"),
        ("[]", "object"),
        (RESPONSE.replace('"PingResponse"', "1"), "string"),
    ],
)
def test_a_file_that_cannot_be_read_is_not_missing(
    request_text: str, error: str, tmp_path: Path
) -> None:
    lay_out(tmp_path, {"PingResponse.json": RESPONSE, "PingRequest.json": request_text})
    report = lint(tmp_path)
    assert any(error in each.reason for each in report.errors)
    assert report.advice == ()
    (tmp_path / "PingRequest.json").rename(tmp_path / "PongRequest.json")
    assert "unpaired" in [advice.rule for advice in lint(tmp_path).advice]


def test_a_missing_name_is_reported_once(tmp_path: Path) -> None:
    text = """{ "type": "data", "validVersions": "0", "fields": [
        { "name": "A", "versions": "0+", "fields": [ { "type": "int8", "versions": "0+" } ] },
        { "name": "B", "versions": "0+", "fields": [ { "type": "int8", "versions": "0+" } ] }
      ], "commonStructs": [
        { "versions": "0+", "fields": [] }, { "versions": "0+", "fields": [] } ] }"""
    lay_out(tmp_path, {"M.json": text, "N.json": '{ "type": "data", "validVersions": "0" }'})
    report = lint(tmp_path)
    assert {e.rule for e in report.errors} == {"missing-key"}
    assert {e.rule for e in report.advice} == {"flexible-versions-missing"}
    assert len(report.errors) == 9


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('"type": "int23"', "did you mean int32?"),
        ('"type": "strnig"', "did you mean string?"),
        ('"type": "int8", "nulableVersions": "0+"', "did you mean nullableVersions?"),
        ('"type": "int8", "mapkey": true', "did you mean mapKey?"),
    ],
)
def test_what_was_meant_is_offered(wrong: str, right: str, tmp_path: Path) -> None:
    field = f'{{ "name": "A", "versions": "0+", {wrong} }}'
    text = f'{{ "name": "M", "type": "data", "validVersions": "0", "fields": [{field}] }}'
    (tmp_path / "M.json").write_text(text)
    (error,) = lint(tmp_path).errors
    assert right in error.reason


def test_an_entity_type_of_others_is_advice_and_is_generated(tmp_path: Path) -> None:
    """AutoMQ's schemas have some; nothing on the wire depends on them."""
    fields = [
        f'{{ "name": "{name}", "type": "int64", "versions": "0+", "entityType": "{entity}" }}'
        for name, entity in (("A", "streamId"), ("B", "brokerid"))
    ]
    text = '{ "name": "M", "type": "data", "validVersions": "0", "flexibleVersions": "none",'
    (tmp_path / "M.json").write_text(f'{text} "fields": [{", ".join(fields)}] }}')
    report = lint(tmp_path)
    assert (report.errors, len(report.advice)) == ((), 2)
    assert "did you mean brokerId?" in report.advice[1].reason
    (message,) = model.load(tmp_path)
    assert "streamId" in render_message(message).text


def test_an_error_prints_as_editors_understand_it(tmp_path: Path) -> None:
    (tmp_path / "M.json").write_text('{ "name": "M",\n "type": "data",\n "validVersions": "0+" }')
    with pytest.raises(SchemaErrors) as caught:
        load_file(tmp_path / "M.json")
    file = tmp_path / "M.json"
    assert str(caught.value).splitlines() == [
        f'{file}:1:1: M: "fields" is missing: it must be a list of fields [missing-key]',
        f"{file}:3:19: M: valid versions end: 0-N is right, with N the newest, not 0+"
        " [valid-versions-open]",
    ]


def test_errors_pickle(tmp_path: Path) -> None:
    (tmp_path / "M.json").write_text("[")
    with pytest.raises(SchemaErrors) as caught:
        load_file(tmp_path / "M.json")
    assert pickle.loads(pickle.dumps(caught.value)).errors == caught.value.errors


def test_our_own_schemas_break_no_rule_and_need_no_advice() -> None:
    report = lint(schemas_dir())
    assert (
        report.text()
        == f"{len(load_directory(schemas_dir()))} messages, 0 errors, 0 pieces of advice"
    )


def test_no_struct_can_take_the_name_of_what_a_generated_module_uses() -> None:
    free = set()
    for message in model.load(schemas_dir())[::10]:
        for node in ast.walk(ast.parse(render_message(message).text)):
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                names = {alias.name for alias in node.names}
                free |= {name for name in names if wrong_class_name(name, "struct") is None}
            own = {struct.name for struct in message.structs}
            if isinstance(node, ast.Name) and node.id not in own and node.id[0].isupper():
                free |= {node.id} if wrong_class_name(node.id, "struct") is None else set()
    assert not free


def test_no_message_can_take_the_name_of_what_a_generated_package_uses() -> None:
    index, *_ = render([], "mine.messages")
    nodes = list(ast.walk(ast.parse(index.text)))
    names = {alias.name for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names}
    names |= {n.id for n in nodes if isinstance(n, ast.Name)}
    assert [name for name in names if wrong_message_name(name) is None] == []


def test_the_list_of_rules_has_their_requirements() -> None:
    lines = rules_text().splitlines()
    assert [line.split()[0] for line in lines] == list(RULES)
    assert {line.split()[0] for line in lines if line.endswith("(advice)")} == ADVICE
