"""Options have the same names in every verb, and the help lists them by task."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire_cli.input.panels import Panel
from kafkawire_cli.registry import command
from kafkawire_cli.verb_table import VERBS, Task
from tests.cli.reports import report, run
from tests.conftest import FIXTURES

CAPTURE: Final = FIXTURES / "captures" / "ck-group-range.pcap"


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each verb, or its subcommands."""
    for name in VERBS:
        found: Any = command(name)
        for inner, one in getattr(found, "commands", {"": found}).items():
            yield f"{name} {inner}".strip(), one


ALL: Final = dict(commands())


def test_a_short_option_has_one_meaning() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for one in ALL.values():
        for parameter in one.params:
            long = [name for name in parameter.opts if name.startswith("--")]
            for name in set(parameter.opts) - set(long):
                meanings[name] |= set(long)
    assert meanings["-o"] == {"--output"}
    assert meanings["-f"] == {"--format"}
    assert {name for name, found in meanings.items() if len(found) > 1} <= {"-i"}


@pytest.mark.parametrize("name", ALL)
def test_json_has_one_spelling(name: str) -> None:
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert "--json" in options or "--format" not in options


def test_json_is_the_format(tmp_path: Path) -> None:
    whole = report("summary", CAPTURE)
    for words in (("--json",), ("-f", "table", "--json")):
        assert json.loads(run("summary", CAPTURE, *words).stdout) == whole
    assert run("summary", CAPTURE, "--json", "-f", "table").stdout[0] != "{"
    assert run("summary", CAPTURE, "--json=x").exit_code == 2
    rows = run("decode", CAPTURE, "--json").stdout.splitlines()
    assert rows == run("decode", CAPTURE, "-f", "jsonl").stdout.splitlines()
    assert "--json: No such file" in run("summary", "--", "--json").stderr
    out = tmp_path / "records.jsonl"
    assert run("decode", CAPTURE, "--table", "records", f"--out={out}").exit_code == 0
    assert out.exists()


@pytest.mark.parametrize("name", ALL)
def test_options_are_listed_by_task(name: str) -> None:
    done = run(*name.split(), "--help")
    assert done.exit_code == 0
    headings = {line.rstrip(":") for line in done.stdout.splitlines() if line[:1].strip()}
    panels = {getattr(each, "rich_help_panel", None) for each in ALL[name].params} - {None}
    assert {str(each) for each in panels} <= headings
    assert panels <= set(Panel)
    unlisted = [
        each
        for each in ALL[name].params
        if each.param_type_name == "option" and getattr(each, "rich_help_panel", None) is None
    ]
    assert len(unlisted) <= 11


def test_verbs_are_listed_by_task() -> None:
    shown = run("--help").stdout
    for task in Task:
        assert f"\n{task.value}:\n" in shown
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ")]
    assert set(VERBS) <= set(listed)


def test_a_misspelt_verb_or_option_is_named() -> None:
    assert "'topics'" in run("topcs").stderr
    assert "--create" in run("topics", "--creat", "t").stderr


def test_a_missing_argument_is_described() -> None:
    done = run("summary")
    reason = "Capture files or directories, read as one capture; - for stdin."
    assert done.stderr.splitlines()[-1] == f"Error: Missing argument 'FILE...'. {reason}"
    assert "Missing argument 'TOPIC...'. Topics to read." in run("consume").stderr


def test_a_misspelt_choice_has_a_suggestion() -> None:
    done = run("latency", CAPTURE, "--by", "cleint")
    choices = "'cleint' is not one of 'api', 'version', 'client', 'broker', 'connection'"
    assert f"--by: {choices}; did you mean 'client'?" in done.stderr
