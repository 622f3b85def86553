"""The files of the package, its behaviour where golden vectors do not reach, and bad names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafkawire_cli.main import app
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.model import load
from kafkawire_codegen.targets import generate_target
from kafkawire_codegen.targets.typescript import RUNTIME
from kafkawire_codegen.targets.typescript.text import comment, literal

from .. import hostile
from .node import HERE, TARGET, run


def test_the_package_has_a_module_for_each_message(sources: Path) -> None:
    names = {m.module.rstrip("_").replace("_", "-") for m in load(schemas_dir())}
    assert {file.stem for file in (sources / "messages").iterdir()} == names
    assert {file.stem for file in (sources / "runtime").iterdir()} == set(RUNTIME)
    about = json.loads((sources.parent / "package.json").read_text())
    assert about["name"] == "kafka-messages"
    assert "dependencies" not in about
    assert json.loads((sources.parent / "tsconfig.json").read_text())["compilerOptions"]["strict"]


def test_output_is_the_same_each_time(sources: Path) -> None:
    again = generate_target(TARGET, schemas_dir(), sources.parent)
    assert (again.messages, again.changed) == (292, 0)


def test_behaviour(sources: Path) -> None:
    """Errors, limits, ranges, tagged fields, frames, imports: behaviour.mjs says each."""
    run("--test-reporter=dot", HERE / "behaviour.mjs", cwd=sources)


def test_the_runtime_has_syntax_that_node_erases(sources: Path) -> None:
    """Node refuses enums, namespaces and parameter properties where it imports a module."""
    every = "\n".join(file.read_text("utf-8") for file in sources.rglob("*.ts"))
    assert not re.search(r"^\s*(export )?(enum|namespace|const enum) ", every, re.MULTILINE)
    assert not re.search(r'from "\.[^"]*(?<!\.ts)"', every)


@pytest.mark.parametrize("name", ["@scope/messages", "a", "kafka.messages-2"])
def test_names_that_npm_takes(name: str, tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    generate_target(TARGET, tmp_path / "schemas", tmp_path / "out", name)
    assert json.loads((tmp_path / "out" / "package.json").read_text())["name"] == name


@pytest.mark.parametrize("name", ["Kafka", "a b", "a/b", "@a", '"', "../x", "x" * 215, ".x"])
def test_names_that_npm_does_not_take(name: str, tmp_path: Path) -> None:
    schemas = hostile.write(
        tmp_path / "schemas", [hostile.message("M", hostile.field("F", "bool"))]
    )
    out = tmp_path / "out"
    arguments = ["--target", TARGET, "--schemas", str(schemas), "--out", str(out)]
    ran = CliRunner().invoke(app, ["codegen", *arguments, "--package", name])
    assert ran.exit_code == 2, ran.output
    assert "--package" in ran.output
    assert not out.exists()


def test_the_command_line_writes_it(tmp_path: Path) -> None:
    arguments = ["codegen", "--target", TARGET, "--out", str(tmp_path)]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    assert re.match(r"292 messages, 304 files in .*, 304 files changed\n", ran.output)


def test_text_of_schemas_stays_text() -> None:
    assert comment("ends */ here") == ["/** ends *\\/ here */"]
    assert comment("a\u202eb\x00c\n\u2028d") == ["/** a\\u{202e}b\\u{0}c  d */"]
    assert comment("@deprecated, a@b") == ["/** \\@deprecated, a\\@b */"]
    long = comment("*/" * 300, "  ")
    assert all(len(line) <= 100 for line in long[1:-1])
    assert "*/" not in "".join(long[:-1])
    assert literal('"\u2028\\') == '"\\"\\u2028\\\\"'
