"""Suites that other clients carry: how each is fetched and run, and what it says.

kafka-python   its source distribution has them; pytest, in the versions of our environment
kgo            franz-go's client, a Go module of the version in `kgo/go.mod`
librdkafka     Debian's source package has them (`librdkafka.py`)
tools          calls of Kafka's command line tools (`tools/`), whose output is compared
kadm           calls of kadm's methods by a program of ours (`kadm/main.go`), results compared
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from tests.real.java import install

from . import calls_of_kadm, librdkafka
from .outcomes import FAILED, PASSED, SKIPPED, Outcomes
from .tools.sweep import transcript

SUITE_SECONDS: Final = 1200
TEST_SECONDS: Final = 120
NEWEST_OF_KAFKA_PYTHON: Final = "4.3"
"""What it takes a newer Kafka for."""
KGO: Final = Path(__file__).parent / "kgo"
PACKAGE: Final = "github.com/twmb/franz-go/pkg/kgo"
KGO_RECORDS: Final = 5000
"""Records of its largest tests; half a million by default."""

EXTERNAL_SERVICE: Final = '''
"""What the suite expects of a broker that it has not started; its own file is not distributed."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def stop(self):
        pass


class SpawnedService:
    pass
'''


class Sweep(NamedTuple):
    """Calls whose results at both brokers are compared.

    fetch: what they need, into a folder. run: makes all calls; returns the result of each.
    """

    name: str
    fetch: Callable[[Path], None]
    run: Callable[[Path, str], dict[str, str]]


class Suite(NamedTuple):
    """Tests of a client. fetch: what it needs, into a folder. run: those tests, or all."""

    name: str
    fetch: Callable[[Path], None]
    run: Callable[[Path, str, Sequence[str]], Outcomes]


# -- kafka-python


def fetch_kafka_python(folder: Path) -> None:
    """Fetch the source distribution, and add what it lacks."""
    release = version("kafka-python")
    _run(
        (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"),
        ("--dest", str(folder), f"kafka-python=={release}"),
        cwd=folder,
    )
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder, filter="data")
    tests = _source(folder) / "test"
    (tests / "__init__.py").touch()
    (tests / "service.py").write_text(EXTERNAL_SERVICE)


def run_kafka_python(folder: Path, bootstrap: str, tests: Sequence[str]) -> Outcomes:
    """Run tests of the clients; not those that start brokers with TLS and SASL of their own."""
    report = folder / "report.xml"
    source = _source(folder)
    integration = Path("test", "integration")
    ignored = [
        f"--ignore={integration / f'test_{kind}_integration.py'}" for kind in ("ssl", "sasl")
    ]
    command = (sys.executable, "-m", "pytest", "--quiet", "-p", "pytest_timeout")
    options = ("-o", "addopts=", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}")
    _run(
        (*command, *options, "--timeout-method=signal", f"--junitxml={report}"),
        (*ignored, *(tests or (str(integration),))),
        cwd=source,
        environment={
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(source),
            "KAFKA_ROOT": str(folder),
            "KAFKA_URI": f"kafka://{bootstrap}",
            "KAFKA_VERSION": NEWEST_OF_KAFKA_PYTHON,
        },
    )
    return of_junit(report.read_text(encoding="utf-8"))


def of_junit(text: str) -> Outcomes:
    """Read the outcomes of a report in JUnit's format."""
    outcomes: Outcomes = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = not kinds.isdisjoint({"failure", "error"})
        file = case.attrib["classname"].replace(".", "/")
        outcome = FAILED if failed else SKIPPED if "skipped" in kinds else PASSED
        outcomes[f"{file}.py::{case.attrib['name']}"] = outcome
    return outcomes


def _source(folder: Path) -> Path:
    (source,) = folder.glob("kafka_python-*/")
    return source


# -- kgo


def fetch_kgo(folder: Path) -> None:
    """Compile the tests."""
    _run(("go", "test", "-c", "-o", str(folder / "kgo.test"), PACKAGE), cwd=KGO)


def run_kgo(folder: Path, bootstrap: str, tests: Sequence[str]) -> Outcomes:
    """Run all tests, or those with their parts."""
    pattern = "|".join(sorted({test.split("/")[0] for test in tests}))
    some = f"-test.run=^({pattern})$" if tests else "-test.run=."
    binary = (str(folder / "kgo.test"), "-test.v=test2json", f"-test.timeout={SUITE_SECONDS}s")
    output = _run(
        ("go", "tool", "test2json", *binary, some),
        cwd=Path(_run(("go", "list", "-f", "{{.Dir}}", PACKAGE), cwd=KGO).strip()),
        environment={
            "KGO_SEEDS": bootstrap,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": str(KGO_RECORDS),
        },
    )
    return of_test2json(output.splitlines())


def of_test2json(lines: Iterable[str]) -> Outcomes:
    """Read the outcomes of `go tool test2json`. A test without an end has failed."""
    words = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED, "run": FAILED}
    outcomes: Outcomes = {}
    for line in lines:
        event = json.loads(line)
        if "Test" in event and event["Action"] in words:
            outcomes[event["Test"]] = words[event["Action"]]
    return outcomes


def fetch_tools(_folder: Path) -> None:
    """Fetch Kafka's jars, if they are not there."""
    install()


SUITES: Final[tuple[Suite | Sweep, ...]] = (
    Suite("kafka-python", fetch_kafka_python, run_kafka_python),
    Suite("kgo", fetch_kgo, run_kgo),
    Suite("librdkafka", librdkafka.fetch, librdkafka.run),
    Sweep("tools", fetch_tools, transcript),
    Sweep("kadm", calls_of_kadm.fetch, calls_of_kadm.transcript),
)


def _run(*command: Sequence[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command and return its output; tests that fail do not make it an error."""
    words = [word for part in command for word in part]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=SUITE_SECONDS + 60,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout
