"""What an installation without extras does, and says of what it lacks."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kafkawire
from kafkawire.errors import MissingPackage
from kafkawire.extras import requires
from tests.conftest import FIXTURES

CAPTURE = str(FIXTURES / "captures" / "ck-group-range.pcap")
WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
COMMAND = """
from kafkawire_cli.main import main
sys.argv = ["kafkawire", *{arguments!r}]
main()
"""
EXTRAS = ("duckdb", "fsspec", "pandas", "plotly", "polars", "pyarrow", "pyspark")


def python(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script where no package of an extra is installed."""
    code = WITHOUT.format(missing=EXTRAS) + script
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["decode", "0001670000000300016d", "--api", "Heartbeat", "--version", "1"],
        ["decode", CAPTURE, "--format", "table"],
        ["summary", CAPTURE],
        ["groups", CAPTURE],
        ["latency", CAPTURE],
        ["explain", CAPTURE, "--packet", "4"],
        ["version", "--report"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_decoding_and_reports_need_no_extra(arguments: list[str]) -> None:
    done = python(COMMAND.format(arguments=arguments))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["decode", CAPTURE, "--table", "exchanges"], "pip install 'kafkawire[tables]'"),
        (["report", CAPTURE], "pip install 'kafkawire[report]'"),
        (["sql", "SELECT 1", CAPTURE], "pip install 'kafkawire["),
        (["spark", CAPTURE, "-o", "tables"], "pip install 'kafkawire[spark]'"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_what_is_missing_is_named_with_the_command(arguments: list[str], command: str) -> None:
    done = python(COMMAND.format(arguments=arguments))
    assert done.returncode == 2
    assert command in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "kafkawire.open_capture('x.pcap')",
        "from kafkawire.capture.tables import read",
        "import kafkawire.records.arrow",
        "import kafkawire.log.arrow",
        "import kafkawire.sql",
    ],
)
def test_imports_of_the_library_name_it_too(statement: str) -> None:
    done = python(f"import kafkawire\n{statement}")
    assert "MissingPackage: pyarrow is not installed: pip install 'kafkawire[" in done.stderr


def test_only_the_package_itself_is_named() -> None:
    with pytest.raises(MissingPackage, match="absent_package"), requires("absent_package", "x"):
        __import__("absent_package.inner")
    with pytest.raises(ModuleNotFoundError) as caught, requires("absent_package", "x"):
        __import__("another_package")
    assert not isinstance(caught.value, MissingPackage)
    assert kafkawire.KafkaWireError in MissingPackage.__mro__
