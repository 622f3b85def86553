"""Builds the tests of librdkafka from Debian's source package, and runs those that need a broker.

apt-get source ─▶ configure, make ─▶ build/librdkafka/.../test-runner ─▶ a report for each test

Its table of tests says which run at any broker over plain TCP: those without flags, in the default
scenario. Each is a process of its own, in librdkafka's quick mode.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.conftest import ROOT

from .outcomes import FAILED, PASSED, SKIPPED, Outcomes

FOLDER: Final = ROOT / "build" / "librdkafka"
SOURCES: Final = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources")
"""Debian's own lists of packages; those of its source packages are the same with another type."""
WITHOUT: Final = ("--disable-sasl", "--disable-ssl", "--disable-curl")
TEST: Final = re.compile(r"_TEST\((\w+),\s*([^,)]+?)\s*[,)](.*?)(?=_TEST\(|\{NULL\})", re.DOTALL)
SCENARIO: Final = re.compile(r'\.scenario = "([^"]*)"')
ANY_BROKER: Final = "0"
"""The flags of tests that need no more than a broker."""
STATES: Final = {"PASSED": PASSED, "SKIPPED": SKIPPED}
"""The others are failures."""
KAFKA_VERSION: Final = "4.4.0"
"""What librdkafka compares with the versions that its tests need."""
TEST_SECONDS: Final = 180
AT_ONCE: Final = 4
"""Tests mostly wait."""


def fetch(_folder: Path) -> None:
    """Fetch and build, if that is not done."""
    if _runners():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    lists = FOLDER / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (FOLDER / "parts").mkdir(exist_ok=True)
    for name in SOURCES:
        if Path(name).exists():
            copy = FOLDER / "parts" / Path(name).name
            copy.write_text(of_source_packages(Path(name).read_text("utf-8")), "utf-8")
    parts = f"Dir::Etc::sourceparts={FOLDER / 'parts'}"
    options = (
        "-o",
        "Dir::Etc::sourcelist=/dev/null",
        "-o",
        parts,
        "-o",
        f"Dir::State::lists={lists}",
    )
    _run(("apt-get", *options, "update"), FOLDER)
    _run(("apt-get", *options, "source", "--download-only", "librdkafka"), FOLDER)
    [description] = FOLDER.glob("librdkafka_*.dsc")
    _run(("dpkg-source", "--extract", description.name), FOLDER)
    [source] = FOLDER.glob("librdkafka-*/")
    _run(("./configure", *WITHOUT), source)
    _run(("make", "libs"), source)
    _run(("make", "-C", "tests", "test-runner"), source)


def of_source_packages(text: str) -> str:
    """Return a list of package sources with the type of source packages."""
    return re.sub(r"^(Types: |)deb(?= |$)", r"\1deb-src", text, flags=re.MULTILINE)


def plain_tests(text: str) -> Iterator[str]:
    """Yield the tests that run at any broker. text: of librdkafka's table of tests, in C."""
    table = text[text.index("struct test tests[]") :]
    for name, flags, rest in TEST.findall(table):
        scenario = SCENARIO.search(rest)
        usual = scenario is None or "default" in scenario[1].split(",")
        if flags == ANY_BROKER and usual:
            yield name


def run(folder: Path, bootstrap: str, tests: Sequence[str]) -> Outcomes:
    """Run all tests, or those named."""
    [runner] = _runners()
    configuration = folder / "test.conf"
    configuration.write_text(f"metadata.broker.list={bootstrap}\n", "utf-8")
    chosen = tests or list(plain_tests((runner.parent / "test.c").read_text("utf-8")))

    def outcome(test: str) -> str:
        return _outcome(runner, configuration, test)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(chosen, pool.map(outcome, chosen), strict=True))


def _outcome(runner: Path, configuration: Path, test: str) -> str:
    report = configuration.with_name(f"{test}.json")
    report.unlink(missing_ok=True)
    libraries = (runner.parents[1] / "src", runner.parents[1] / "src-cpp")
    environment = {
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        "RDKAFKA_TEST_CONF": str(configuration),
        "TEST_KAFKA_VERSION": KAFKA_VERSION,
        "TEST_REPORT": str(report),
        "TESTS": test,
    }
    with report.with_suffix(".log").open("wb") as log:
        try:
            subprocess.run(
                (str(runner), "-p1", "-Q", "-L", "-E", "-K"),
                cwd=runner.parent,
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
                timeout=TEST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return FAILED
    return of_report(report.read_text("utf-8"), test) if report.exists() else FAILED


def of_report(text: str, test: str) -> str:
    """Read the outcome of a test from a report of librdkafka's."""
    return STATES.get(json.loads(text)["tests"][test]["state"], FAILED)


def _runners() -> list[Path]:
    return list(FOLDER.glob("librdkafka-*/tests/test-runner"))


def _run(command: Iterable[str], folder: Path) -> None:
    subprocess.run(list(command), cwd=folder, check=True, stdout=subprocess.DEVNULL)
