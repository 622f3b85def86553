"""What an import brings along: the start-up time of library and command line, as sets of modules.

The seconds are in benchmarks/startup.py; here stands what must not be imported to keep them low.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from kafkawire_cli.registry import command
from kafkawire_cli.verb_table import VERBS
from tests.conftest import FIXTURES

IMPORT: Final = "import kafkawire"
HELP: Final = """
import sys
from kafkawire_cli.main import main
sys.argv = ["kafkawire", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
"""
VERSION: Final = HELP.replace("--help", "version")
DECODE: Final = HELP.replace(
    '"--help"', f'"decode", {str(FIXTURES / "captures" / "kcat-kf.pcap")!r}'
)
REPORTS: Final = ("clients", "groups", "latency", "summary", "topics", "transactions")
TEXT: Final = {"kafkawire.printed.recognition", "kafkawire_cli.input.hex_text"}
"""What recognises inputs that are text: it compiles patterns, a tenth of the time of a start."""
ROTATED: Final = DECODE.replace('"decode",', '"decode", "--rotated",')

RUNTIME: Final = {"kafkawire", "librt", "mypy_extensions"}
"""Top-level packages, beside the standard library, that the codecs stand on."""


def modules_after(script: str) -> set[str]:
    """Run a script in a fresh interpreter and say which modules it left imported."""
    code = f"{script}\nimport sys\nprint('|'.join(['', *sys.modules]), file=sys.stderr)"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    return set(ran.stderr.splitlines()[-1].split("|")) - {""}


def beside_standard_library(modules: set[str]) -> set[str]:
    """Name the top-level packages that neither Python nor its start-up brings."""
    new = {name.partition(".")[0] for name in modules - modules_after("")}
    return {name for name in new if name not in sys.stdlib_module_names and "__mypyc" not in name}


def test_import_kafkawire_brings_only_its_runtime() -> None:
    assert beside_standard_library(modules_after(IMPORT)) <= RUNTIME


def test_import_kafkawire_loads_no_message_and_no_upper_layer() -> None:
    ours = {name for name in modules_after(IMPORT) if name.startswith("kafkawire.")}
    allowed = ("kafkawire.errors", "kafkawire.primitives")
    assert {name for name in ours if not name.startswith(allowed)} == set()


@pytest.mark.parametrize("module", ["asyncio", "dataclasses", "inspect", "json", "socket", "ssl"])
def test_import_kafkawire_needs_no_heavy_part_of_the_standard_library(module: str) -> None:
    assert module not in modules_after(IMPORT)


def test_a_message_is_imported_alone() -> None:
    modules = modules_after("import kafkawire\nkafkawire.REGISTRY.load('FetchRequest')")
    messages = {name for name in modules if name.startswith("kafkawire.messages.")}
    assert messages == {"kafkawire.messages.fetch_request"}


@pytest.mark.parametrize("script", [HELP, VERSION], ids=["help", "version"])
def test_the_command_line_starts_without_what_single_verbs_need(script: str) -> None:
    heavy = {"construct", "cramjam", "crc32c", "jinja2", "numpy", "pyarrow", "pyspark", "zlib_ng"}
    assert beside_standard_library(modules_after(script)) & heavy == set()


def test_help_imports_no_message() -> None:
    modules = modules_after(HELP)
    assert {name for name in modules if name.startswith("kafkawire.messages.")} == set()


def ours(modules: set[str]) -> set[str]:
    """Name the modules of the command line that were imported."""
    return {name.partition(".")[2] for name in modules if name.startswith("kafkawire_cli.")}


def test_help_imports_no_verb() -> None:
    table = {"main", "notes", "pipes", "registry", "verb_command", "verb_table"}
    assert ours(modules_after(HELP)) == table


@pytest.mark.parametrize("verb", REPORTS)
def test_reports_import_nothing_that_makes_columns_or_reads_text_or_connects(verb: str) -> None:
    """Importing numpy takes more than half of the time of a report of a small capture."""
    script = DECODE.replace('"decode",', f'"{verb}",')
    others = {"asyncio", "numpy", "pyarrow", "ssl", "tomllib"}
    assert modules_after(script) & (others | TEXT) == set()


@pytest.mark.parametrize("script", [DECODE, ROTATED], ids=["decode", "rotated"])
def test_decode_imports_nothing_of_other_verbs_and_no_extra(script: str) -> None:
    others = {"asyncio", "gzip", "hashlib", "multiprocessing", "numpy", "pyarrow", "rich", "ssl"}
    assert modules_after(script) & (others | TEXT) == set()


@pytest.mark.parametrize("table", ["", '"--table", "exchanges",'], ids=["messages", "table"])
def test_decode_imports_neither_filters_nor_decryption_nor_zstd_for_a_plain_capture(
    table: str,
) -> None:
    modules = modules_after(DECODE.replace('"decode",', f'"decode", {table}'))
    unused = {"backports.zstd", "dateutil", "importlib.abc", "kafkawire.capture.filters"}
    unused |= {"kafkawire.capture.snapshot_classes", "kafkawire.capture.tls.connection"}
    assert modules & unused == set()


def test_decode_imports_no_other_verb() -> None:
    others = {f"verbs.{verb.module}" for name, verb in VERBS.items() if name != "decode"}
    assert ours(modules_after(DECODE)) & others == set()


@pytest.mark.parametrize("name", VERBS)
def test_the_one_line_help_of_a_verb_is_that_of_its_module(name: str) -> None:
    text = command(name).help
    assert text is not None
    first = " ".join(text.partition("\n\n")[0].split())
    assert first == VERBS[name].help
