"""`kafkawire schema ...` as a person and a script use it: output and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kafkawire_cli.verbs.messages.schema import app
from kafkawire_codegen.rules import RULES

OK, FINDINGS, USAGE = 0, 1, 2
HEAD = '"apiKey": 7, "validVersions": "0-1", "flexibleVersions": "1+"'
FIELD = '{ "name": "A", "type": "int32", "versions": "0+" }'


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def lines(result: Result) -> list[str]:
    return result.stdout.splitlines()


def machine(result: Result) -> Any:
    return json.loads(result.stdout)


def write(directory: Path, field: str = FIELD) -> Path:
    """Write the request and the response of an API named A."""
    directory.mkdir(exist_ok=True)
    for kind in ("Request", "Response"):
        keys = f'"name": "A{kind}", "type": "{kind.lower()}", {HEAD}'
        (directory / f"A{kind}.json").write_text(f'{{ {keys}, "fields": [\n{field} ] }}')
    return directory


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "good")


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write(tmp_path / "bad", '{ "name": "A", "type": "int23", "versions": "0+" }')


@pytest.fixture
def untidy(tmp_path: Path) -> Path:
    return write(tmp_path / "untidy", FIELD.replace('"0+"', '"2+"'))


def test_our_own_schemas_are_linted_when_none_are_named() -> None:
    result = run("lint", "--strict")
    assert result.exit_code == OK
    assert lines(result)[-1].endswith("messages, 0 errors, 0 pieces of advice")


def test_lint_prints_findings_and_exits_1(bad: Path) -> None:
    result = run("lint", bad)
    assert result.exit_code == FINDINGS
    reason = "unknown type 'int23': not a primitive, not a common struct, and without fields"
    assert lines(result) == [
        f"{bad}/ARequest.json:2:24: ARequest.A: {reason}; did you mean int32? [unknown-type]",
        f"{bad}/AResponse.json:2:24: AResponse.A: {reason}; did you mean int32? [unknown-type]",
        "2 messages, 2 errors, 0 pieces of advice",
    ]


def test_lint_of_single_files(good: Path, bad: Path) -> None:
    assert run("lint", good / "ARequest.json").exit_code == OK
    assert run("lint", good / "ARequest.json", bad / "ARequest.json").exit_code == FINDINGS


def test_advice_is_a_finding_only_when_strict(untidy: Path) -> None:
    result = run("lint", untidy)
    assert result.exit_code == OK
    assert lines(result)[0].endswith("[never-present] (advice)")
    assert run("lint", "--strict", untidy).exit_code == FINDINGS


def test_lint_for_machines(bad: Path, good: Path) -> None:
    result = run("lint", bad, good, "--json")
    assert result.exit_code == FINDINGS
    reports = machine(result)
    assert reports[str(good)] == {"messages": 2, "errors": [], "advice": []}
    error = reports[str(bad)]["errors"][0]
    assert (error["file"], error["line"], error["column"]) == (f"{bad}/ARequest.json", 2, 24)
    assert (error["path"], error["rule"]) == ("ARequest.A", "unknown-type")


def test_lint_lists_its_rules() -> None:
    result = run("lint", "--rules")
    assert result.exit_code == OK
    assert [line.split()[0] for line in lines(result)] == list(RULES)


def test_lint_of_a_missing_or_empty_directory_is_a_usage_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        result = run("lint", path)
        assert result.exit_code == USAGE
        assert str(path.name) in result.stderr


def test_show_of_a_message(good: Path) -> None:
    result = run("show", "arequest", "--schemas", good)
    assert result.exit_code == OK
    assert lines(result) == [
        "ARequest: request 7, versions 0-1, flexible 1+",
        "",
        "   type   0  1",
        "A  int32  ●  ●",
    ]


def test_show_of_an_api_is_both_its_messages(good: Path) -> None:
    result = run("show", "A", "--schemas", good, "--json")
    assert [table["name"] for table in machine(result)] == ["ARequest", "AResponse"]


def test_show_of_our_own_schemas_and_of_a_file(good: Path) -> None:
    assert lines(run("show", "list_offsets"))[0].startswith("ListOffsetsRequest: request 2,")
    assert lines(run("show", good / "AResponse.json"))[0].startswith("AResponse: response 7,")


def test_show_with_a_column_for_each_version() -> None:
    (table,) = machine(run("show", "FetchRequest", "--each", "--json"))
    assert table["columns"] == [str(version) for version in range(19)]


def test_show_of_an_unknown_name_suggests_a_name(good: Path) -> None:
    result = run("show", "ARequests", "--schemas", good)
    assert result.exit_code == USAGE
    assert "did you mean ARequest?" in result.stderr


def test_schema_errors_are_reported_by_every_verb(bad: Path, good: Path) -> None:
    for arguments in (
        ("show", "A", "--schemas", bad),
        ("diff", good, bad),
        ("coverage", "4.0", "--schemas", bad),
    ):
        result = run(*arguments)
        assert result.exit_code == FINDINGS
        assert "[unknown-type]" in result.stderr
        assert result.stdout == ""


def test_diff_of_directories_exits_1_only_for_rules_broken(good: Path, tmp_path: Path) -> None:
    tagged = '{ "name": "B", "type": "int8", "taggedVersions": "1+", "tag": 0 }'
    grown = write(tmp_path / "grown", f"{FIELD}, {tagged}")
    result = run("diff", good, grown)
    assert result.exit_code == OK
    assert lines(result) == [
        "ARequest",
        "  + B: int8, 1+",
        "AResponse",
        "  + B: int8, 1+",
        "0 added, 0 removed, 2 changed, 0 rules broken",
    ]
    shrunk = run("diff", grown, good, "--json")
    assert shrunk.exit_code == FINDINGS
    assert [breach["rule"] for breach in machine(shrunk)["breaches"]] == ["field-removed"] * 2


def test_diff_of_releases() -> None:
    result = run("diff", "4.1", "4.2")
    assert result.exit_code == OK
    at = lines(result).index("WriteTxnMarkersRequest")
    assert lines(result)[at + 1 : at + 3] == [
        "  + versions 2",
        "  + Markers[].TransactionVersion: int8, 2+",
    ]
    assert run("diff", "3.9", "4.0").exit_code == FINDINGS


def test_diff_with_an_unknown_release_is_a_usage_error() -> None:
    result = run("diff", "4.0", "4.O")
    assert result.exit_code == USAGE
    assert "4.O: not a directory, an archive or a release" in " ".join(result.stderr.split())
    assert "4.4, trunk" in " ".join(result.stderr.split())


def test_diff_of_a_directory_with_a_release_leaves_out_what_a_release_has_not(
    good: Path, tmp_path: Path
) -> None:
    table = '{ "releases": { "1.0": { "A": "0" } }, "unstable": {} }'
    (good / "releases.json").write_text(table)
    data = '{ "name": "D", "type": "data", "validVersions": "0", "fields": [] }'
    grown = write(tmp_path / "grown")
    (grown / "D.json").write_text(data)
    result = run("diff", "1.0", grown, "--schemas", good, "--format", "json")
    assert result.exit_code == OK
    evolution = machine(result)
    assert (evolution["added"], evolution["removed"]) == ([], [])
    assert [change["versions_added"] for change in evolution["changed"]] == ["1", "1"]
    back = run("diff", grown, "1.0", "--schemas", good)
    assert back.exit_code == FINDINGS
    assert "ARequest: 1 is no longer valid [version-dropped]" in back.stdout


def archive(path: Path, folder: Path, inside: str) -> Path:
    """Pack the schemas of a folder into an archive."""
    with zipfile.ZipFile(path, "w") as packed:
        for file in sorted(folder.glob("*.json")):
            packed.write(file, f"{inside}{file.name}")
    return path


def test_every_verb_reads_archives(good: Path, bad: Path, tmp_path: Path) -> None:
    jar = archive(tmp_path / "kafka-clients-1.0.jar", good, "common/message/")
    assert lines(run("lint", jar)) == ["2 messages, 0 errors, 0 pieces of advice"]
    assert lines(run("show", "ARequest", "--schemas", jar))[0].startswith("ARequest: request 7")
    assert run("diff", good, jar).stdout == "0 added, 0 removed, 0 changed, 0 rules broken\n"
    table = '{ "releases": { "1.0": { "A": "0-1" } }, "unstable": {} }'
    (tmp_path / "r.json").write_text(table)
    assert run("coverage", "--schemas", jar, "--releases", tmp_path / "r.json").exit_code == OK
    faulty = archive(tmp_path / "bad.jar", bad, "common/message/")
    result = run("diff", jar, faulty)
    assert result.exit_code == FINDINGS
    assert result.stderr.startswith(f"{faulty}!common/message/ARequest.json:2:24: ARequest.A: ")


def test_a_later_source_overrides(good: Path, tmp_path: Path) -> None:
    jar = archive(tmp_path / "kafka-clients-1.0.jar", good, "common/message/")
    ours = tmp_path / "ours"
    ours.mkdir()
    text = (good / "ARequest.json").read_text().replace('"int32"', '"int64"')
    (ours / "ARequest.json").write_text(text)
    tables = machine(run("show", "A", "--schemas", jar, "--schemas", ours, "--json"))
    assert [table["rows"][0]["type"] for table in tables] == ["int64", "int32"]
    tables = machine(run("show", "A", "--schemas", ours, "--schemas", jar, "--json"))
    assert [table["rows"][0]["type"] for table in tables] == ["int32", "int32"]


def test_a_hostile_archive_is_a_usage_error_without_control_characters(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    jar = archive(tmp_path / "evil.jar", tmp_path, "../\x1b[31m/message/")
    for arguments in (("lint", jar), ("diff", jar, jar), ("show", "A", "--schemas", jar)):
        result = run(*arguments)
        assert result.exit_code == USAGE
        assert "not a plain path inside the archive" in " ".join(result.stderr.split())
        assert "\x1b" not in result.stderr


def test_coverage_of_one_release_and_of_all() -> None:
    result = run("coverage", "2.2")
    assert result.exit_code == OK
    assert lines(result)[-1] == "Kafka 2.2: 44 APIs, 143 versions, 143 covered, 0 missing"
    everything = run("coverage")
    assert everything.exit_code == OK
    names = [line.split(":")[0] for line in lines(everything)]
    assert (names[0], names[-1]) == ("Kafka 2.2", "Kafka trunk")


def test_coverage_that_lacks_something_exits_1(good: Path) -> None:
    table = '{ "releases": { "1.0": { "A": "0-2" }, "0.9": { "A": "0" } }, "unstable": {} }'
    (good / "releases.json").write_text(table)
    result = run("coverage", "1.0", "--schemas", good)
    assert result.exit_code == FINDINGS
    assert lines(result) == [
        "  7 A: 0-2 released, 0-1 covered, missing 2",
        "Kafka 1.0: 1 API, 3 versions, 2 covered, 1 missing",
    ]
    assert run("coverage", "0.9", "--schemas", good).exit_code == OK
    (covered,) = machine(run("coverage", "1.0", "--schemas", good, "--json"))
    assert covered["complete"] is False


def test_merge_of_releases(good: Path, tmp_path: Path) -> None:
    old = archive(tmp_path / "kafka-clients-1.0.2.jar", good, "common/message/")
    changed = f'{FIELD}, {{ "name": "B", "type": "string", "versions": "1+" }}'
    new = write(tmp_path / "new", changed)
    for file in new.iterdir():
        file.write_text(file.read_text().replace('"0-1"', '"1-2"'))
    result = run("merge", old, f"1.1={new}", "--out", tmp_path / "out")
    assert result.exit_code == OK
    assert lines(result) == [
        "ARequest 1: changed in place between 1.0 and 1.1, the later wins",
        "  + B: string",
        "AResponse 1: changed in place between 1.0 and 1.1, the later wins",
        "  + B: string",
        f"2 messages, 6 versions, 2 releases in {tmp_path}/out; 3 files changed, "
        "2 versions changed in place, 0 not merged",
    ]
    text = (tmp_path / "out" / "ARequest.json").read_text()
    assert text.startswith("// Version 1 changed in place between 1.0 and 1.1: gained B.")
    assert '"validVersions": "0-2"' in text
    assert run("lint", "--strict", tmp_path / "out").exit_code == OK
    assert run("coverage", "--schemas", tmp_path / "out").exit_code == OK
    assert run("diff", "1.0", "1.1", "--schemas", tmp_path / "out").exit_code == FINDINGS
    again = run("merge", old, f"1.1={new}", "--out", tmp_path / "out", "--json")
    found = machine(again)
    assert (found["files_changed"], found["releases"]) == (0, ["1.0", "1.1"])
    assert [field["path"] for field in found["changed_in_place"][0]["after"]] == ["A", "B"]


def test_merge_exits_1_for_what_it_cannot_merge(good: Path, tmp_path: Path) -> None:
    new = write(tmp_path / "new", FIELD.replace("int32", "int64"))
    for file in new.iterdir():
        file.write_text(file.read_text().replace('"0-1"', '"2-3"'))
    result = run("merge", f"1.0={good}", f"1.1={new}", "--out", tmp_path / "out")
    assert result.exit_code == FINDINGS
    reason = "not merged: ARequest.A was int32, and is int64"
    assert lines(result)[0] == f"ARequest 0-1 of 1.0: {reason}"


def test_merge_keeps_words_and_does_not_overwrite_unless_requested(
    good: Path, tmp_path: Path
) -> None:
    ours = tmp_path / "ours"
    assert run("merge", f"1.0={good}", "--out", ours).exit_code == OK
    text = (ours / "ARequest.json").read_text()
    about = text.replace('"versions": "0+" }', '"versions": "0+",\n      "about": "Ours." }')
    (ours / "ARequest.json").write_text(f"// A comment.\n{about}")
    new = write(tmp_path / "new", FIELD.replace(" }", ', "about": "Theirs." }'))
    again = ("merge", ours, f"1.1={new}", "--out", ours)
    result = run(*again)
    assert result.exit_code == USAGE
    assert "would be overwritten" in " ".join(result.stderr.split())
    result = run(*again, "--overwrite", "--about-from", ours)
    assert result.exit_code == OK
    assert (ours / "ARequest.json").read_text() == f"// A comment.\n{about}"
    assert json.loads((ours / "releases.json").read_text())["releases"].keys() == {"1.0", "1.1"}
    result = run(*again, "--overwrite")
    assert '"about": "Theirs."' in (ours / "ARequest.json").read_text()


def test_merge_of_a_release_without_a_name_is_a_usage_error(good: Path, tmp_path: Path) -> None:
    result = run("merge", good, "--out", tmp_path / "out")
    assert result.exit_code == USAGE
    assert "its release is unknown: give it as NAME=" in " ".join(result.stderr.split())
    result = run("merge", "1.0=absent.jar", "--out", tmp_path / "out")
    assert result.exit_code == USAGE
    assert "absent.jar: No such file or directory" in " ".join(result.stderr.split())


def test_a_terminal_gets_colour_and_a_pipe_does_not(bad: Path) -> None:
    command = [sys.executable, "-m", "kafkawire_cli.main", "schema", "lint", str(bad)]
    plain = subprocess.run(command, capture_output=True, check=False).stdout
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    subprocess.run(command, stdout=theirs, env=environment, check=False)
    os.close(theirs)
    coloured = os.read(ours, 65536)
    os.close(ours)
    assert b"\x1b[" in coloured
    assert b"\x1b[" not in plain
    assert re.sub(rb"\x1b\[[0-9;]*m", b"", coloured).split() == plain.split()


@pytest.mark.parametrize("verb", ["lint", "show", "diff", "merge", "coverage"])
def test_help_has_examples(verb: str) -> None:
    result = run(verb, "--help")
    assert result.exit_code == OK
    assert f"kafkawire schema {verb} " in result.stdout
