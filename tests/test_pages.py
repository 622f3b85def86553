"""What the documentation shows runs as it stands, and prints what is shown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from socket import create_server
from typing import Final

import pytest

from kafkawire.net.server_thread import ServerThread
from tests.command_server import python
from tests.conftest import ROOT, missing
from tests.pages import ERROR, PAGES, Block, Playground, agrees, blocks, commands, environment

HERE: Final = "tests/test_pages.py"
SPARK: Final = "tests/spark/test_docs.py"
BY_LANGUAGE: Final = {"python": HERE, "console": HERE, "sh": HERE, "text": "a drawing"}
"""Language of a block -> what runs it, except for the blocks of ELSEWHERE and NOT_RUN."""
ELSEWHERE: Final = {
    ("README.md", "sh"): "tests/test_readme.py",
    ("CONTRIBUTING.md", "sh"): HERE,
    **dict.fromkeys(
        [("docs/build.md", language) for language in ("make", "meson", "python", "sh", "toml")],
        "tests/packaging/test_build_examples.py",
    ),
    ("docs/broker.md", "mermaid"): "tests/broker/test_docs.py",
    ("docs/broker.md", "py"): "tests/test_guide.py",
    ("docs/client.md", "mermaid"): "tests/client/test_drawings.py",
    ("docs/client.md", "py"): "tests/client/real/test_share_consumer.py",
    ("docs/client.md", "sh"): HERE,
    ("docs/examples/keyvalue/README.md", "console"): "tests/test_examples.py",
    ("docs/examples/keyvalue/README.md", "py"): "tests/test_examples.py",
    ("docs/examples/keyvalue/README.md", "python"): "tests/test_examples.py",
    ("docs/guide/broker.md", "py"): "tests/test_guide.py",
    ("docs/guide/codecs.md", "json"): "tests/test_guide.py",
    ("docs/guide/codecs.md", "py"): "tests/test_guide.py",
    ("docs/guide/codecs.md", "sh"): "tests/test_guide.py",
    ("docs/guide/spark.md", "python"): SPARK,
    ("docs/guide/spark.md", "sh"): SPARK,
    ("docs/guide/spark.md", "sql"): SPARK,
    ("docs/internals/cluster.md", "mermaid"): "tests/controller/test_broker_states.py",
    ("docs/log.md", "json"): HERE,
    ("docs/spark.md", "json"): SPARK,
    ("docs/spark.md", "python"): SPARK,
    ("docs/spark.md", "sh"): SPARK,
    ("docs/client.md", "toml"): "tests/cli/input/test_profiles.py",
    ("docs/spark.md", "sql"): SPARK,
    ("docs/templates.md", "jinja"): "tests/codegen/test_user_templates.py",
    ("docs/templates.md", "sh"): "tests/codegen/test_user_templates.py",
    ("docs/typescript.md", "ts"): "tests/codegen/typescript/test_docs.py",
}
"""(page, language) -> the test that runs these blocks; it names the page."""
NOT_RUN: Final = {
    ("docs/internals/cluster.md", "sh"): "the trace of a seed, a thousand lines",
    ("docs/internals/layout.md", "sh"): "writes into the tree",
    ("docs/internals/spark.md", "sh"): "a benchmark of six gigabytes",
    ("docs/internals/wheels.md", "sh"): "needs containers, and builds for minutes",
    ("docs/typescript.md", "sh"): "publishes; tests/codegen/typescript/test_types.py builds",
}
"""(page, language) -> why no test runs these blocks; the modules that they name exist."""
SERVE: Final = "kafkawire serve"
NODES: Final = re.compile(r"(?<=[=,]127\.0\.0\.1:)(\d+)(?=,|$)", re.MULTILINE)
"""The ports of controllers, where a block has several processes."""


def of(language: str) -> list[object]:
    return [
        pytest.param(block, id=block.name)
        for block in blocks(language=language)
        if not {(block.page, language)} & (ELSEWHERE.keys() | NOT_RUN.keys())
    ]


@pytest.fixture
def playground(tmp_path: Path) -> Playground:
    return Playground(tmp_path)


def test_a_test_runs_each_block() -> None:
    found = {(block.page, block.language) for block in blocks()}
    missed = {one for one in found if one[1] not in BY_LANGUAGE} - ELSEWHERE.keys()
    assert missed == set()
    assert ELSEWHERE.keys() | NOT_RUN.keys() <= found
    for (page, _), test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8"), (page, test)


def test_an_ellipsis_stands_for_lines() -> None:
    assert agrees("a\n...\nd\n", "a\nb\nc\nd\n")
    assert agrees("a\n...\n", "a\n")
    assert not agrees("a\n...\nd\n", "a\nb\n")
    assert not agrees("a\n", "a\nb\n")


@pytest.mark.parametrize("block", of("python"))
def test_python_examples_run(block: Block, tmp_path: Path) -> None:
    for name in ("fixtures", "schemas"):
        (tmp_path / name).symlink_to(ROOT / name)
    ran = subprocess.run(
        [python(), "-W", "error", "-c", block.text],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("block", [*of("console"), *of("sh")])
def test_commands_run_and_print_what_is_shown(block: Block, playground: Playground) -> None:
    if NODES.search(block.text):
        check_nodes(block, playground)
        return
    for line, shown in commands(block):
        if line.startswith(SERVE):
            first, status, errors = playground.interrupted(line)
            assert first.startswith("listening on 127.0.0.1:"), errors
            assert (status, errors) == (0, "")
            continue
        if "| jq " in line and shutil.which("jq") is None:
            missing("jq")
        if line.startswith("tshark ") and shutil.which("tshark") is None:
            missing("tshark")
        ran = playground.run(line)
        assert "Traceback" not in ran.stderr
        if ERROR.search(shown):
            assert ran.returncode == 2
            assert agrees(shown, ran.stderr), f"{line}\n{ran.stderr}"
            continue
        assert ran.returncode in (0, 1), ran.stderr
        if shown:
            assert agrees(shown, ran.stdout), f"{line}\n{ran.stdout}"


def check_nodes(block: Block, playground: Playground) -> None:
    """Run processes that are one cluster, on free ports."""
    text = block.text
    with ExitStack() as stack:
        sockets = [stack.enter_context(create_server(("127.0.0.1", 0))) for _ in range(3)]
        for port, bound in zip(NODES.findall(text), sockets, strict=True):
            text = text.replace(f":{port}", f":{bound.getsockname()[1]}")
    lines = [line for line, _ in commands(block._replace(text=text))]
    playground.together(lines)


def test_drawings_have_no_commands() -> None:
    """A block of commands is `sh` or `console`, so that they run."""
    drawn = [line for block in blocks(language="text") for line in block.text.splitlines()]
    assert [line for line in drawn if re.match(r"\$ |(kafkawire|make|pip|python) \S", line)] == []


def test_commands_at_a_broker_run(playground: Playground) -> None:
    """Of docs/client.md: one broker for all of them."""
    (block,) = blocks("docs/client.md", "sh")
    with ServerThread() as broker:
        for line, _ in commands(block):
            located = line.replace("localhost:9092", broker.bootstrap)
            if line.startswith("kafkawire consume") and "json" in line:
                record, status, errors = playground.interrupted(located)
                assert json.loads(record)["value"] == {"text": "apples"}, errors
                assert status == 0
            else:
                ran = playground.run(located)
                assert ran.returncode == 0, ran.stderr


def test_a_value_of_a_log_is_the_one_shown(playground: Playground) -> None:
    """Of docs/log.md."""
    (block,) = blocks("docs/log.md", "json")
    ran = playground.run("kafkawire log __consumer_offsets-12")
    assert json.loads(block.text) in [json.loads(line)["value"] for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_targets_and_modules_that_pages_name_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    for module in re.findall(r"python -m ((?:benchmarks|kafkawire|tests)[\w.]*)", text):
        name = module.rstrip(".").replace(".", "/")
        tops = (ROOT, ROOT / "cli", ROOT / "codegen")
        assert any(
            (top / f"{name}{end}").exists() for top in tops for end in (".py", "/__main__.py")
        ), module


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_paths_that_pages_name_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    tops = "|".join(
        (r"\.ci", "benchmarks", "cli", "codegen", "docs", "fixtures", "kafkawire", "tests")
    )
    for path in re.findall(rf"`((?:{tops})/[\w./-]*)`", text):
        assert (ROOT / path).exists() or path == "kafkawire/messages/", path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_extras_that_pages_name_exist(page: Path) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extras in re.findall(r"install '(?:kafkawire|\.)\[([a-z,]+)\]", page.read_text("utf-8")):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
