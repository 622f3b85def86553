"""What an installation has: the command by two names, and all that its verbs need."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.conftest import FIXTURES, ROOT
from tests.pages import PAGES, blocks

HISTORY = {"CHANGELOG.md", "CONTRIBUTING.md"}
"""Pages that name what was, or what will be."""
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "kafkawire"]
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert "python -m kafkawire [OPTIONS] COMMAND" in shown.stdout
    assert "decode" in shown.stdout
    unknown = subprocess.run([*command, "nope"], capture_output=True, text=True, check=False)
    assert unknown.returncode == 2
    capture = str(FIXTURES / "captures" / "kcat-kf.pcap")
    ran = subprocess.run([*command, "summary", capture], capture_output=True, text=True, check=True)
    assert "Requests" in ran.stdout


def required(requirements: list[str]) -> set[str]:
    """Return the names of requirements; of extras with the extra: kafkawire[tables]."""
    return {re.split(r"[<>=;~! ]", one)[0].lower() for one in requirements}


def test_what_makes_tables_is_an_extra_of_all_that_need_them() -> None:
    extras = {name: required(those) for name, those in PROJECT["optional-dependencies"].items()}
    assert "pyarrow" in extras["tables"]
    assert not required(PROJECT["dependencies"]) & extras["tables"]
    for name in ("fsspec", "spark", "sql"):
        assert "kafkawire[tables]" in extras[name]
    assert "kafkawire[sql]" in extras["notebook"]


def test_the_metadata_say_whose_it_is_and_for_what() -> None:
    assert PROJECT["authors"]
    assert PROJECT["urls"]
    known = PROJECT["classifiers"]
    least = int(PROJECT["requires-python"].removeprefix(">=3."))
    versions = {
        one for one in known if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", one)
    }
    assert f"Programming Language :: Python :: 3.{least}" in versions
    assert not any(one.startswith("License ::") for one in known)  # PEP 639: `license` says it


def test_a_command_that_adds_an_extra_says_where_it_works() -> None:
    """No package index has kafkawire, so that it adds to an installation."""
    lines = [line for block in blocks(language="sh") for line in block.text.splitlines()]
    adding = [line for line in lines if line.startswith("pip install 'kafkawire[")]
    assert len(adding) >= 4
    assert all("# where kafkawire is installed" in line for line in adding)
    pages = [path.read_text("utf-8") for path in PAGES if path.name not in HISTORY]
    assert not any(re.search(r"pip install (--\S+ )*kafkawire(?![-\w\[])", page) for page in pages)


@pytest.mark.parametrize("page", ["README.md", "docs/capture.md", "docs/tables.md", "docs/log.md"])
def test_extras_that_pages_name_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {
        extra
        for extras in re.findall(r"(?:kafkawire|\.)\[([a-z,]+)\]", text)
        for extra in extras.split(",")
    }
    assert named <= set(PROJECT["optional-dependencies"])
