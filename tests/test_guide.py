"""Examples of docs/guide that need a project around them; links and pictures of all pages."""

from __future__ import annotations

import json
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from docs import screenshots
from kafkawire_codegen.targets import TARGETS
from tests.conftest import ROOT
from tests.pages import PAGES, blocks, commands

GUIDE = ROOT / "docs" / "guide"
COMMAND = [sys.executable, "-m", "kafkawire_cli.main"]

CLIENT = """
import asyncio

import confluent_kafka
import pytest

from kafkawire.net.producer import Producer


def send_orders(bootstrap):
    async def send():
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            await (await producer.send("orders", b"apples"))

    asyncio.run(send())


def send_in_a_transaction(bootstrap):
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "x", "log_level": 0}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"apples")
    producer.commit_transaction(60)


"""
"""What the pages about tests leave to the reader: clients that send one record."""


def code(page: str, language: str) -> list[str]:
    return [block.text for block in blocks(f"docs/{page}", language)]


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("page", ["guide/broker.md", "broker.md"])
def test_a_broker_in_tests(page: str, tmp_path: Path) -> None:
    examples = "\n\n".join(code(page, "py"))
    tests = examples.count("def test_")
    assert tests
    (tmp_path / "test_page.py").write_text(CLIENT + examples)
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "."], tmp_path)
    assert re.search(rf"^{tests} passed", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_codecs_from_schemas(tmp_path: Path) -> None:
    page = "guide/codecs.md"
    (tmp_path / "my-schemas").mkdir()
    for schema in code(page, "json"):
        (tmp_path / "my-schemas" / f"{json.loads(schema)['name']}.json").write_text(schema)
    (block,) = blocks(f"docs/{page}", "sh")
    for line, _ in commands(block):
        done = run([*COMMAND, *shlex.split(line)[1:]], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    example = "\n".join(code(page, "py"))
    done = run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'src')\n{example}"], tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_every_target_is_listed() -> None:
    listed = re.findall(
        r"^\| `([\w-]+)`.* \|$", (GUIDE / "codecs.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(["python", *TARGETS])


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.stem)
def test_a_guide_begins_with_the_question_of_its_reader(page: Path) -> None:
    title, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert first.startswith("You ")
    assert "?" in title + first.partition("`")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)", text):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


def test_make_docs_draws_the_pictures_anew(tmp_path: Path) -> None:
    (tmp_path / "ready-hot").touch()  # installed, as here
    done = subprocess.run(
        ["make", "--dry-run", "docs", f"VENV={tmp_path}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"{tmp_path}/bin/python -m docs.screenshots build/site/images\n" in done.stdout


def test_the_picture_of_a_page_has_the_size_that_is_drawn() -> None:
    """Its pixels are Chromium's; `python -m docs.screenshots` draws it."""
    drawn = screenshots.page_picture()
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", drawn[16:24])
    assert (width, height) == (screenshots.PAGE_WIDTH, screenshots.PAGE_HEIGHT)


@pytest.mark.parametrize("name", screenshots.COMMANDS)
def test_pictures_show_what_commands_print(name: str) -> None:
    drawn = (GUIDE.parent / "images" / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == screenshots.picture(name), "python -m docs.screenshots"
