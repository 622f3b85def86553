"""Templates of users: what they see, what they make, what they must not do, and their errors."""

from __future__ import annotations

import os
import pickle
import re
import shlex
import shutil
import subprocess
from json import dumps
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from kafkawire_cli.main import app
from kafkawire_codegen import generate_templates, model, schemas_dir
from kafkawire_codegen.output import LIST, File
from kafkawire_codegen.targets import Source, source_of
from kafkawire_codegen.user_templates import TemplateErrors
from kafkawire_codegen.user_templates.exposed import NAMES, SHARED, VARIABLES
from kafkawire_codegen.user_templates.filters import FILTERS, comment, json
from kafkawire_codegen.user_templates.messages import Message, message_of
from kafkawire_codegen.user_templates.rendering import Folder, read, render
from kafkawire_codegen.versions import NONE, VersionCondition, Versions
from tests.calls import calls
from tests.codegen.hostile import COLLECTED, field, message
from tests.codegen.test_linear import STEEPEST, nested, written
from tests.conftest import ROOT, missing
from tests.pages import blocks

PAGE: Final = (ROOT / "docs" / "templates.md").read_text("utf-8")
FEW: Final = ("ApiVersionsResponse", "FetchRequest", "HeartbeatRequest", "RequestHeader")


@pytest.fixture(scope="module")
def source() -> Source:
    whole = source_of(schemas_dir(), "kafka")
    few = [each for each in whole.messages if each.name in FEW]
    return Source(few, "kafka", whole.releases)


def files(source: Source, texts: dict[str, str]) -> list[File]:
    return render(Folder(texts, {name: f"T/{name}" for name in texts}), source)


def one(source: Source, text: str) -> str:
    (file,) = files(source, {"a.txt.j2": text})
    return file.text


def errors(source: Source, texts: dict[str, str]) -> list[str]:
    with pytest.raises(TemplateErrors) as caught:
        files(source, texts)
    return [str(error) for error in caught.value.errors]


# -- files


def test_a_path_that_mentions_message_makes_a_file_for_each(source: Source) -> None:
    made = files(source, {"src/{{ message.name | snake }}.rs.j2": "{{ message.name }}\n"})
    assert [(file.path, file.text) for file in made] == [
        ("src/api_versions_response.rs", "ApiVersionsResponse\n"),
        ("src/fetch_request.rs", "FetchRequest\n"),
        ("src/heartbeat_request.rs", "HeartbeatRequest\n"),
        ("src/request_header.rs", "RequestHeader\n"),
    ]


def test_another_path_makes_one_file_of_all_messages(source: Source) -> None:
    (file,) = files(source, {"{{ name }}.md.j2": "{{ messages | length }} {{ apis | length }}"})
    assert file == File("kafka.md", "4 3")


def test_a_file_whose_name_is_empty_is_not_made(source: Source) -> None:
    path = "x/{% if message.type == 'header' %}{{ message.name }}{% endif %}.j2"
    assert [file.path for file in files(source, {path: ""})] == ["x/RequestHeader"]


def test_templates_that_begin_with_an_underscore_are_for_others(source: Source) -> None:
    texts = {
        "in/_macros.j2": "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}",
        "_head.j2": "head of {{ message.name }}\n",
        "_base.j2": "<{% block body %}{% endblock %}>",
        "{{ message.name }}.j2": '{% extends "_base.j2" %}{% block body %}{% include "_head.j2" %}'
        '{% import "in/_macros.j2" as m %}{{ m.twice(message.api_key) }}{% endblock %}',
        "__init__.py.j2": "",
    }
    made = {file.path: file.text for file in files(source, texts)}
    assert set(made) == {*FEW, "__init__.py"}
    assert made["FetchRequest"] == "<head of FetchRequest\n11>"


def test_a_folder_is_read_and_written(tmp_path: Path) -> None:
    templates, out = tmp_path / "templates", tmp_path / "out"
    (templates / "sub").mkdir(parents=True)
    (templates / "sub" / "apis.txt.j2").write_text("{{ apis[0].name }} {{ name }}\n")
    (templates / "README.md").write_text("not a template")
    made = generate_templates(schemas_dir(), templates, out, name="mine")
    assert (made.messages > 200, made.files, made.changed) == (True, 1, 1)
    assert (out / "sub" / "apis.txt").read_text() == "Produce mine\n"
    assert (out / LIST).read_text() == "templates sub/apis.txt\n"
    assert generate_templates(schemas_dir(), templates, out, name="mine").changed == 0


def test_a_folder_without_templates_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no templates"):
        generate_templates(schemas_dir(), tmp_path, tmp_path / "out")


# -- the model


def values_of(messages: list[model.Message]) -> list[object]:
    """List every value of the model that a template can reach from messages."""
    found: list[object] = []
    for each in map(message_of, messages):
        for made in (each, each.at(each.versions.low), each.at(each.versions.high)):
            structs = made.structs
            fields = [f for struct in structs for f in struct.fields]
            found += [made, *structs, *fields, *(f.versions for f in fields)]
            found += [f.wire for f in fields if f.wire is not None]
    return found


def test_every_documented_attribute_exists(source: Source) -> None:
    seen: set[type] = set()
    for value in values_of(source.messages):
        seen.add(type(value))
        for name in NAMES[type(value)]:
            getattr(value, name)
    assert len(seen) == 8
    assert all(hasattr(VersionCondition, name) for name in SHARED[VersionCondition])


def test_the_page_documents_every_variable_attribute_and_filter() -> None:
    from kafkawire_codegen.user_templates.documentation import BEGIN, END, page

    begin, end = PAGE.index(BEGIN) + len(BEGIN), PAGE.index(END)
    assert PAGE[begin:end].strip() == page().strip()
    for names in (VARIABLES, FILTERS, *NAMES.values()):
        assert [name for name in names if f"\n| `{name}" not in page()] == []


def test_values_are_those_of_the_generator() -> None:
    """Each message in each version: what `at` gives, counted on the generator's own model."""
    for own in source_of(schemas_dir(), "kafka").messages:
        seen = message_of(own)
        for version in (own.versions.low, own.versions.high):
            at = seen.at(version)
            for struct in at.structs:
                (of,) = [each for each in own.structs if each.name == struct.name]
                wanted = [f for f in of.fields if version in f.versions]
                assert [f.name for f in struct.fields] == [f.kafka_name for f in wanted]
                for f, origin in zip(struct.fields, wanted, strict=True):
                    assert f.is_nullable == (version in origin.nullable)  # type: ignore[attr-defined]
                    assert f.is_tagged == (version in origin.tagged)  # type: ignore[attr-defined]
                    assert f.struct is None or f.struct in at.structs


def test_a_version_has_its_own_structs_and_fields(source: Source) -> None:
    text = one(
        source,
        "{% for m in messages if m.name == 'FetchRequest' %}{% for v in [4, 18] %}"
        "{% set at = m.at(v) %}{{ at.version }} {{ at.is_flexible }} {{ at.header }}"
        "{% for s in at.structs %} {{ s.name }}({{ s.plain_fields | map(attribute='name')"
        " | join(',') }};{{ s.tagged_fields | map(attribute='tag') | join(',') }})"
        "{% endfor %}\n\n{% endfor %}{% endfor %}",
    )
    assert text.splitlines() == [
        "4 False 1 FetchPartition(Partition,FetchOffset,PartitionMaxBytes;) "
        "FetchTopic(Topic,Partitions;) "
        "FetchRequest(ReplicaId,MaxWaitMs,MinBytes,MaxBytes,IsolationLevel,Topics;)",
        "18 True 2 ReplicaState(ReplicaId,ReplicaEpoch;) "
        "FetchPartition(Partition,CurrentLeaderEpoch,FetchOffset,LastFetchedEpoch,"
        "LogStartOffset,PartitionMaxBytes;0,1) "
        "FetchTopic(TopicId,Partitions;) ForgottenTopic(TopicId,Partitions;) "
        "FetchRequest(MaxWaitMs,MinBytes,MaxBytes,IsolationLevel,SessionId,SessionEpoch,Topics,"
        "ForgottenTopicsData,RackId;0,1)",
    ]


def test_versions_are_ranges_of_numbers(source: Source) -> None:
    text = one(
        source,
        "{% set m = messages | selectattr('name', 'eq', 'HeartbeatRequest') | first %}"
        "{% set f = m.root.fields | selectattr('name', 'eq', 'GroupInstanceId') | first %}"
        "{{ m.versions }} {{ m.versions | length }} {{ m.versions | list }} {{ 3 in f.versions }} "
        "{{ 2 in f.versions }} {{ 'yes' if f.versions else 'no' }} "
        "{{ 'yes' if f.tagged else 'no' }} {{ f.tagged }} {{ f.versions == f.nullable }} "
        "{{ m.flexible.intersection(f.versions) }} {{ m.versions.without(f.versions) | join }} "
        "{{ f.versions.covers(m.flexible) }} {{ f.versions.low }} {{ f.versions.high }}",
    )
    assert text == "0-4 5 [0, 1, 2, 3, 4] True False yes no none True 4 0-2 True 3 4"


def built(tmp_path: Path, document: dict[str, Any]) -> Message:
    (own,) = source_of(written(tmp_path, document).parent, "x").messages
    return message_of(own)


def test_defaults_lengths_and_keys(tmp_path: Path) -> None:
    inner = [field("X", "int32", mapKey=True, entityType="brokerId")]
    made = built(
        tmp_path,
        message(
            "M",
            field("A", "string", default="null", nullableVersions="0+"),
            field("B", "[]int8"),
            field("C", "D", fields=[field("Y", "int8")]),
            field("E", "int64", default="0x10"),
            field("F", "uuid"),
            field("G", "string", flexibleVersions="none"),
            field("H", "[]I", fields=inner),
            validVersions="0-2",
            flexibleVersions="1+",
        ),
    )
    fields = {f.name: f for f in made.root.fields}
    assert [(f.default, f.default_kind) for f in fields.values()] == [
        (None, "null"),
        ([], "array"),
        ({}, "struct"),
        (16, "value"),
        ("A" * 22, "value"),
        ("", "value"),
        ([], "array"),
    ]
    assert [str(f.compact) for f in fields.values()] == ["1-2", "1-2", *["none"] * 4, "1-2"]
    (x,) = fields["H"].struct.fields  # type: ignore[union-attr]
    assert (x.key, x.entity_type, fields["A"].key) == (True, "brokerId", False)


def test_apis_and_releases(source: Source) -> None:
    text = one(
        source,
        "{% for a in apis %}{{ a.key }} {{ a.name }} {{ a.request is none }} "
        "{{ a.response is none }}; {% endfor %}"
        "{{ releases[0].name }} {{ releases[-1].versions('Fetch') }} "
        "{{ releases[0].versions('None') }}",
    )
    newest = source.releases
    assert newest is not None
    last = list(newest.ranges)[-1]
    assert text == (
        "1 Fetch False True; 12 Heartbeat False True; 18 ApiVersions True False; "
        f"{next(iter(newest.ranges))} {newest.ranges[last]['Fetch']} none"
    )


def test_a_message_is_seen_in_proportion_to_its_size(tmp_path: Path) -> None:
    counted = []
    for size in (3, 30):
        (own,) = source_of(written(tmp_path, nested(size)).parent, "x").messages
        counted.append(calls(lambda own=own: message_of(own).at(1)))  # type: ignore[misc]
    assert counted[1] < STEEPEST * counted[0]


# -- filters


def filtered(source: Source, expression: str) -> str:
    return one(source, f"{{{{ {expression} }}}}")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'MaxWaitMs' | snake", "max_wait_ms"),
        ("'ISRChange' | constant", "ISR_CHANGE"),
        ("'MaxWaitMs' | camel", "maxWaitMs"),
        ("'ISRChange' | camel", "isrChange"),
        ("'max_wait_ms' | pascal", "MaxWaitMs"),
        ("'MaxWaitMs' | kebab", "max-wait-ms"),
        ("'ISRChange' | json_name", "iSRChange"),
        ("'FetchResponse' | api_name", "Fetch"),
        ("'type' | avoid(['type', 'fn'])", "type_"),
        ("'type' | avoid(['type'], suffix='Value')", "typeValue"),
        ("'topic' | avoid(['type'])", "topic"),
        ("'a  b\\nc' | comment('//')", "// a b c"),
        ("'' | comment('//')", ""),
        ("'aaaa bbbb cccc dddd eeee' | comment('#', width=20)", "# aaaa bbbb cccc dddd\n# eeee"),
        ("[none, true, 'é<', {}] | json", '[null, true, "\\u00e9<", {}]'),
    ],
)
def test_filters(source: Source, expression: str, text: str) -> None:
    assert filtered(source, expression) == text


def test_json_of_odd_values() -> None:
    odd = [float("nan"), float("inf"), float("-inf"), b"\x00", 1.5]
    assert [json(value) for value in odd] == ['"NaN"', '"Infinity"', '"-Infinity"', '"AA=="', "1.5"]
    with pytest.raises(TypeError, match="no JSON form"):
        json(object())


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (Versions(0, 9), "true"),
        (NONE, "false"),
        (Versions(3, 9), "version >= 3"),
        (Versions(0, 2), "version <= 2"),
        (Versions(4, 4), "version == 4"),
        (Versions(3, 5), "version >= 3 && version <= 5"),
    ],
)
def test_conditions(wanted: Versions, text: str) -> None:
    when = VersionCondition(wanted, Versions(0, 9))
    assert FILTERS["condition"](when) == text
    for version in when.possible:
        python = FILTERS["condition"](when, "v", " and ", "True", "False")
        assert eval(python, {"v": version}) == (version in wanted)
        low, high = when.at_least, when.at_most
        inside = (low is None or version >= low) and (high is None or version <= high)
        assert (inside and bool(wanted)) == (version in wanted)


HOSTILE: Final = (
    "*/ int main() {} /*",
    "**/ x",
    "ends with \\",
    "trigraph ??/",
    "\\u000a escape",
    "lines\u2028of\u0085all\x0bsorts\r\nhere",
    "\x00\x1b[31m\u202ebidi\u2066",
    "\\" * 50,
    "half of a pair: \ud800",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_ends_its_comment(text: str) -> None:
    made = comment(text, "//", without=["*/", "/*"])
    assert all(line.startswith("// ") and line.isprintable() for line in made.split("\n"))
    assert len(made.splitlines()) == len(made.split("\n"))
    assert "*/" not in made
    assert "/*" not in made
    assert not any(line.rstrip().endswith(("\\", "??/")) for line in made.split("\n"))
    assert "\\u" not in made.replace("\\\\", "")


def test_a_comment_keeps_any_delimiter_out() -> None:
    assert comment("a ------ b", "--", without=["--"]) == "-- a - - - - - - b"
    assert comment("it's", "'", without=["'"]) == "' it s"


# -- errors


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a\n{% if %}", "2: Expected an expression, got 'end of statement block'"),
        ("{{ 1 +", "1: unexpected 'end of template'"),
        ("a\nb {{ nothing }}", "2: 'nothing' is undefined"),
        ("\n\n{{ messages[0].nmae }}", "3: Message has no attribute 'nmae'; did you mean 'name'?"),
        ("{{ messages[0].root.fields[0].kafka_name }}", "1: Field has no attribute 'kafka_name'"),
        ("{{ messages[0].at(99) }}", "1: ValueError: ApiVersionsResponse has versions 0-5, not 99"),
        ("\n{{ 1 / 0 }}", "2: ZeroDivisionError: division by zero"),
        ("{{ 'x' | nosuch }}", "1: No filter named 'nosuch'"),
        ("{{ 'x' | avoid }}", "1: TypeError: avoid() missing 1 required"),
        ("\n{% include 'gone.j2' %}", "2: no template 'gone.j2'"),
        ("{% include '../a.txt.j2' %}", "1: no template '../a.txt.j2'"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "1: RecursionError: "),
        ("{% include 'sub/a.txt.j2' %}", "1: RecursionError: "),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", " RecursionError: "),
        ("{% for a in [] %}" * 60 + "{% endfor %}" * 60, " SyntaxError: too many statically"),
    ],
)
def test_an_error_names_file_and_line(source: Source, text: str, error: str) -> None:
    (found,) = errors(source, {"sub/a.txt.j2": text})
    assert found.startswith(f"T/sub/a.txt.j2:{error}"), found


def test_an_error_names_the_message_and_the_innermost_template(source: Source) -> None:
    texts = {
        "_m.j2": "\n{% macro type(f) %}\n{{ f.tpye }}{% endmacro %}",
        "{{ message.name }}.j2": "{% import '_m.j2' as m %}\n{{ m.type(message.root.fields[0]) }}",
    }
    (found,) = errors(source, texts)
    hint = "Field has no attribute 'tpye'; did you mean 'type'?"
    assert found == f"T/_m.j2:3: {hint} (for ApiVersionsResponse)"


def test_the_first_error_of_each_template_is_reported(source: Source) -> None:
    texts = {
        "a.j2": "{{ x }}{{ y }}",
        "_b.j2": "{% for %}",
        "c{{.j2": "",
        "d{{ x }}.j2": "",
        "e.j2": "",
    }
    found = errors(source, texts)
    assert [each.split(":")[0] for each in found] == [
        "T/a.j2",
        "T/_b.j2",
        "T/c{{.j2",
        "T/d{{ x }}.j2",
    ]
    assert "in its path: 'x' is undefined" in found[3]


def test_an_error_of_a_template_that_others_include_is_one(source: Source) -> None:
    texts = {"_a.j2": "{% if %}", "b.j2": "{% include '_a.j2' %}", "c.j2": "{% include '_a.j2' %}"}
    (found,) = errors(source, texts)
    assert found.startswith("T/_a.j2:1: ")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("messages[0]", "Message"),
        ("messages[0].at(0).root", "StructVersion"),
        ("messages[0].root.fields[0].wire", "WireType"),
        ("messages[0].at", "method"),
        ("messages | map(attribute='name')", "generator"),
        ("'a'.upper", "builtin_function_or_method"),
    ],
)
def test_what_has_no_text_is_not_printed(source: Source, value: str, kind: str) -> None:
    """It would be an address, which differs each time."""
    (found,) = errors(source, {"a.j2": f"\n{{{{ {value} }}}}"})
    assert found.startswith(f"T/a.j2:2: TypeError: a {kind} cannot be printed")


def test_a_list_is_printed_as_names(source: Source) -> None:
    assert one(source, "{{ messages[:2] }} {{ messages[0].root.fields[:1] }} {{ apis[:1] }}") == (
        "(Message('ApiVersionsResponse'), Message('FetchRequest')) (Field('ErrorCode'),) "
        "(Api('Fetch'),)"
    )


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["x{{ '' }}.j2", "x.j2"], "T/x.j2: makes the file 'x', which T/x{{ '' }}.j2 makes too"),
        (["{{ message.type }}.j2"], "'request', which T/{{ message.type }}.j2 makes too"),
        (["x.j2", "x/y.j2"], "T/x/y.j2: makes the file 'x/y' inside the file of T/x.j2"),
        (["x/y.j2", "{{ 'x' }}.j2"], "makes the file 'x', which is a folder for T/x/y.j2"),
        (["{{ '../x' }}.j2"], "not a path inside the output folder"),
        (["{{ '/x' }}.j2"], "not a path inside the output folder"),
        (["{{ 'a\\\\..\\\\x' }}.j2"], "not a path inside the output folder"),
        (["a\nb.j2"], "not a printable name"),
        ([f"{LIST}.j2"], "the list of generated files"),
    ],
)
def test_paths_that_cannot_be_made(source: Source, names: list[str], error: str) -> None:
    (found,) = errors(source, dict.fromkeys(names, ""))
    assert error in found


def test_text_that_cannot_be_written_is_an_error(source: Source) -> None:
    (found,) = errors(source, {"a.j2": r"{{ '\ud800' }}"})
    assert found == "T/a.j2: makes text that UTF-8 does not have"


def test_errors_can_be_pickled(source: Source) -> None:
    with pytest.raises(TemplateErrors) as caught:
        files(source, {"a.j2": "{{ x }}"})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    folder, outside = tmp_path / "t", tmp_path / "secret.j2"
    folder.mkdir()
    outside.write_text("secret")
    (folder / "link.j2").symlink_to(outside)
    (folder / "gone.j2").symlink_to(tmp_path / "nothing")
    (folder / "latin.j2").write_bytes(b"ab\xff")
    with pytest.raises(TemplateErrors) as caught:
        read(folder)
    assert [(Path(e.file).name, e.reason) for e in caught.value.errors] == [
        ("gone.j2", "not a file inside the folder"),
        ("latin.j2", "not UTF-8 at byte 2"),
        ("link.j2", "not a file inside the folder"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ messages[0]._message }}",
        "{{ messages[0].at.__globals__ }}",
        "{{ messages[0].at.__func__ }}",
        "{{ ''.__class__ }}",
        "{{ '{0._message}'.format(messages[0]) }}",
        "{{ messages[0] | attr('_message') }}",
        "{{ messages[0].root.fields[0].default.append(1) }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ self._TemplateReference__context }}",
        "{{ lipsum() }}",
        "{{ [1, 2] | random }}",
        "{{ range(1000000000) | list }}",
        "{{ messages[0].versions.parse('1') }}",
    ],
)
def test_templates_are_in_a_sandbox(source: Source, text: str) -> None:
    errors(source, {"a.j2": text})


# -- the command


def run(*given: object) -> Result:
    return CliRunner().invoke(app, ["codegen", *map(str, given)])


def test_the_command_reports_errors_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "good.j2").write_text("good")
    (tmp_path / "bad.j2").write_text("{{ \x1b[31m }}")
    result = run("--templates", tmp_path, "--out", out)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "bad.j2:1: " in result.stderr
    assert "\x1b" not in result.stderr
    assert "Traceback" not in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--templates", "{tmp}/none"], "not a directory"),
        (["--templates", "{tmp}"], "no templates (*.j2) in this directory"),
        (["--templates", "{tmp}", "--target", "x"], "not allowed with --target"),
    ],
)
def test_mistakes_of_usage(options: list[str], error: str, tmp_path: Path) -> None:
    given = [option.format(tmp=tmp_path) for option in options]
    result = run("--out", tmp_path / "out", *given)
    assert result.exit_code == 2
    assert error in " ".join(result.stderr.replace("│", " ").split())


def test_targets_are_listed() -> None:
    result = run("--list-targets")
    assert result.exit_code == 0
    assert "\npython " in f"\n{result.stdout}"
    assert max(map(len, result.stdout.splitlines())) <= 80


# -- docs/templates.md


def test_the_other_examples_of_the_page_run(source: Source) -> None:
    *_, by_version = blocks("docs/templates.md", "jinja")
    text = one(source, by_version.text)
    assert "HeartbeatRequest 4: groupId generationId memberId groupInstanceId?\n" in text


def page_templates() -> dict[str, str]:
    """The templates that the page names before they are shown."""
    shown = re.findall(r"`my-templates/([^`]+\.j2)`\n\n```jinja\n(.*?)^```$", PAGE, re.S | re.M)
    assert len(shown) == 3
    return dict(shown)


def test_the_target_of_the_page_has_40_lines() -> None:
    assert sum(text.count("\n") for text in page_templates().values()) <= 40


@pytest.mark.parametrize("hostile_schemas", [False, True])
def test_go_compiles_the_target_of_the_page(tmp_path: Path, hostile_schemas: bool) -> None:
    """Of docs/templates.md."""
    go = shutil.which("go")
    if go is None:
        missing("go")
    templates, out = tmp_path / "my-templates", tmp_path / "kafka"
    templates.mkdir()
    for name, text in page_templates().items():
        (templates / name).write_text(text)
    (block,) = blocks("docs/templates.md", "sh")
    places = {
        "--templates my-templates": f"--templates {templates}",
        "--output kafka": f"--output {out}",
    }
    line = block.text
    for option, place in places.items():
        assert option in line
        line = line.replace(option, place)
    if hostile_schemas:
        line += f" --schemas {tmp_path / 'schemas'}"
        (tmp_path / "schemas").mkdir()
        for each in COLLECTED:
            (tmp_path / "schemas" / f"{each['name']}.json").write_text(dumps(each))
    assert run(*shlex.split(line)[2:]).exit_code == 0
    if not hostile_schemas:
        (shown,) = blocks("docs/templates.md", "text")
        assert (out / "fetch_request.go").read_text().startswith(shown.text)
    ran = subprocess.run(
        [go, "build", "./..."],
        cwd=out,
        env={**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
