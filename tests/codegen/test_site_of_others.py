"""`--target site` for schemas of others: without releases, with comments, hostile, too large."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafkawire_cli.input.protocol_facts import protocol_facts
from kafkawire_cli.main import app
from kafkawire_codegen.layout import MOST_SPOTS
from kafkawire_codegen.schema import SchemaErrors
from kafkawire_codegen.targets import generate_target
from tests.calls import calls

from . import hostile
from .html_pages import read
from .sites import MARKUP, OWN, assert_links_resolve, codegen, write_hostile
from .test_linear import STEEPEST, long_words, many_structs, nested, wide

pytestmark = pytest.mark.xdist_group("site")


def test_own_schemas_without_releases(tmp_path: Path) -> None:
    schemas = hostile.write(tmp_path / "schemas", [OWN])
    codegen("--schemas", schemas, "--out", tmp_path / "out", "--package", "Ping protocol")
    made = {
        file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*.*")
    }
    assert {"index.html", "messages/PingRequest.html"} < made
    assert not made & {"errors.html", "releases.html", "diff.html", "kips.html", "assets/diff.js"}
    shown = read(tmp_path / "out" / "messages" / "PingRequest.html")
    assert shown.facts["API key"] == "900"
    assert "UNKNOWN_TOPIC_OR_PARTITION" not in shown.text  # Kafka's error codes are not theirs
    table = shown.tables[next(iter(shown.within))]
    assert [cell.text for cell in table.rows[0].cells] == [
        "0",
        "00 00 00 01",
        "count",
        "int32",
        "1",
    ]
    assert "Ping protocol" in read(tmp_path / "out" / "index.html").text
    assert assert_links_resolve(tmp_path / "out") > 20


def test_without_what_the_command_line_supplies(tmp_path: Path) -> None:
    schemas = hostile.write(tmp_path / "schemas", [OWN])
    generate_target("site", schemas, tmp_path / "out")
    shown = read(tmp_path / "out" / "messages" / "PingRequest.html")
    assert "Example bytes" not in shown.text
    assert_links_resolve(tmp_path / "out")


def test_comments_of_schemas_are_shown_but_not_licences(tmp_path: Path) -> None:
    schemas = hostile.write(tmp_path / "schemas", [OWN])
    file = schemas / "PingRequest.json"
    licence = "// Licensed to the Foundation under one\n//\n// or more licenses.\n\n"
    remarks = "// Version 1 adds Count (KIP-1).\n//\n// <b>More.\n// Version 2 does\n// not.\n"
    file.write_text(f"{licence}{remarks}{file.read_text()}")
    codegen("--schemas", schemas, "--out", tmp_path / "out")
    shown = read(tmp_path / "out" / "messages" / "PingRequest.html")
    rows = {row.cells[0].text: row.cells for row in shown.table("version-table").rows}
    assert rows["1"][2].text == (
        "flexible: compact lengths and tagged fields+ Count Version 1 adds Count (KIP-1)."
    )
    assert rows["1"][3].text == "KIP-1"
    assert rows["2"][2].text == "the same fieldsVersion 2 does not."
    assert "<b>More." in shown.text
    assert read(tmp_path / "out" / "kips.html").tables[0].rows[0].cells[0].text == "KIP-1"
    assert "Foundation" not in shown.text


def test_hostile_texts_stay_texts(tmp_path_factory: pytest.TempPathFactory) -> None:
    out = write_hostile(tmp_path_factory.getbasetemp() / "hostile-site")
    assert assert_links_resolve(out) > 100
    for file in out.rglob("*.html"):
        shown = read(file)
        assert not shown.elements.keys() & {"img", "style", "iframe"}
        scripts = 4 if file.name == "diff.html" else 2
        assert shown.elements["script"] == scripts
        assert re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", shown.text) is None
    bad = read(out / "messages" / "BadRequest.html")
    assert bad.elements.get("b", 0) == 7  # those of the legend
    seen = MARKUP.replace("\x00", r"\x00").replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")
    assert bad.text.count(seen) >= 5
    for script in (out / "assets").glob("*-data.js"):
        assert "<" not in script.read_text("ascii")


@pytest.mark.parametrize("document", hostile.COLLECTED[:4], ids=lambda d: d["name"][:20])
def test_a_page_of_every_hostile_schema(document: hostile.Document, tmp_path: Path) -> None:
    schemas = hostile.write(tmp_path / "schemas", [document])
    codegen("--schemas", schemas, "--out", tmp_path / "out")
    assert_links_resolve(tmp_path / "out")


def test_a_table_that_no_browser_could_show_is_an_error(tmp_path: Path) -> None:
    fields = [hostile.field(f"F{n}", "int8", f"{n}+") for n in range(1100)]
    many = hostile.message("Many", *fields, validVersions="0-1100", flexibleVersions="none")
    schemas = hostile.write(tmp_path / "schemas", [many])
    command = [
        "codegen",
        "--target",
        "site",
        "--schemas",
        str(schemas),
        "--out",
        str(tmp_path / "o"),
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "Many: 1100 fields in 1100 different versions" in result.output
    assert not (tmp_path / "o").exists()


def test_many_versions_share_columns(tmp_path: Path) -> None:
    many = {**OWN, "validVersions": "0-32766"}
    codegen("--schemas", hostile.write(tmp_path / "schemas", [many]), "--out", tmp_path / "out")
    shown = read(tmp_path / "out" / "messages" / "PingRequest.html")
    head = shown.table("field-table").head[0].cells
    assert [cell.text for cell in head] == ["Field", "0", "1–32766"]


@pytest.mark.parametrize(("shape", "size"), [(wide, 30), (many_structs, 20), (long_words, 100)])
def test_pages_take_time_in_proportion(
    shape: Callable[[int], hostile.Document], size: int, tmp_path: Path
) -> None:
    counted: list[tuple[int, int]] = []
    for number in (size, 10 * size):
        schemas = hostile.write(tmp_path / f"schemas{number}", [shape(number)])
        out = tmp_path / f"out{number}"
        supplied = protocol_facts(schemas)
        work = calls(partial(generate_target, "site", schemas, out, None, supplied))
        counted.append((work, (out / "messages" / "M.html").stat().st_size))
    (few, short), (many, long) = counted
    assert many < STEEPEST * few
    assert long < STEEPEST * short


def test_structs_that_unfold_to_millions_of_fields_are_an_error(tmp_path: Path) -> None:
    schemas = hostile.write(tmp_path / "schemas", [nested(25)])
    with pytest.raises(SchemaErrors, match=f"{MOST_SPOTS} at most"):
        generate_target("site", schemas, tmp_path / "out", None, protocol_facts(schemas))
