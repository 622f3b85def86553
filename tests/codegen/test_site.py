"""`--target site`: what its pages say, against the protocol's facts; links; hostile schemas."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import kafkawire
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.reference.error_meaning import MEANINGS
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.versions import Versions
from tests.conftest import FIXTURES

from .html_pages import Page, Table
from .sites import FACTS, assert_links_resolve, page, whole_site

LARGEST_PAGE: Final = 150_000
pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_site(tmp_path_factory.getbasetemp() / "whole-site")


def message_page(site: Path, name: str) -> Page:
    return page(site, f"messages/{name}.html")


def versions(text: str | None, within: Versions) -> list[int]:
    run = Versions.parse(text or "none") & within
    return list(range(run.low, run.high + 1))


def of_pages(text: str) -> str:
    """Write a run of versions as pages do."""
    return text.replace("-", "–")


# -- every message, field and version is on its page, with the values of the facts


def test_every_message_has_a_page_and_every_page_a_message(site: Path) -> None:
    assert {file.stem for file in (site / "messages").iterdir()} == set(FACTS)


@pytest.mark.parametrize("start", range(0, len(FACTS), 40))
def test_fields_of_every_version(site: Path, start: int) -> None:
    for name in sorted(FACTS)[start : start + 40]:
        table = message_page(site, name).table("field-table") if FACTS[name]["fields"] else None
        assert shown_fields(table) == facts_of_fields(name), name


def facts_of_fields(name: str) -> list[dict[str, Any]]:
    fact = FACTS[name]
    valid = Versions.parse(fact["validVersions"])
    return [
        {
            "name": field["path"].split(".")[-1],
            "depth": field["path"].count("."),
            "type": field["type"],
            "in": versions(field["versions"], valid),
            "nullable": versions(field.get("nullableVersions"), valid),
            "tagged": dict.fromkeys(versions(field.get("taggedVersions"), valid), field.get("tag")),
            "default": None if field.get("default") is None else str(field["default"]),
            "notes": sorted(
                [field.get("entityType")] * ("entityType" in field)
                + ["map key"] * bool(field.get("mapKey"))
                + ["ignorable"] * (field.get("ignorable") in (True, "true"))
                + ["zero copy"] * bool(field.get("zeroCopy"))
                + [f"flexible {field.get('flexibleVersions')}"] * ("flexibleVersions" in field)
            ),
        }
        for field in fact["fields"]
        if versions(field["versions"], valid)
    ]


def shown_fields(table: Table | None) -> list[dict[str, Any]]:
    """Read the table of a page, whose columns are single versions."""
    if table is None:
        return []
    columns = [int(cell.text) for cell in table.head[0].cells[1:]]
    made: list[dict[str, Any]] = []
    for row in table.rows:
        head, cells = row.cells[0], dict(zip(columns, row.cells[1:], strict=True))
        there = {v: c.text for v, c in cells.items() if c.text and c.text != "−"}
        defaults = head.of("code")
        made.append(
            {
                "name": head.of("name")[0],
                "depth": int(head.attributes["class"].removeprefix("d")),
                "type": "".join(head.of("type")),
                "in": sorted(there),
                "nullable": [v for v, mark in there.items() if "?" in mark],
                "tagged": {
                    v: int(found[1]) for v, m in there.items() if (found := re.search(r"#(\d+)", m))
                },
                "default": None if not defaults else defaults[0].replace('""', ""),
                "notes": sorted(
                    text for text in head.of("notes") if text not in ("default", *defaults)
                ),
            }
        )
        marks_agree(list(cells.values()))
    return made


def marks_agree(cells: list[Any]) -> None:
    """Check that a row says new, removed and changed where it does."""
    plain = [
        re.sub(r"^[+~●]", "", cell.text) if cell.text not in ("", "−") else None for cell in cells
    ]
    states = [cell.attributes.get("class", "") for cell in cells]
    for before, now, state in zip(plain, plain[1:], states[1:], strict=False):
        expected = {
            (True, True): "changed" if before != now else "",
            (False, True): "new",
            (True, False): "removed",
            (False, False): "absent",
        }[before is not None, now is not None]
        assert state == expected, (plain, states)


def test_about_of_every_field(site: Path) -> None:
    for file in sorted(schemas_dir().glob("*.json")):
        if file.stem not in FACTS:
            continue
        text = re.sub(r"(?m)^\s*//.*$", "", file.read_text("utf-8"))
        schema = json.loads(text)
        shown = " ".join(message_page(site, file.stem).text.split())
        for about in abouts(schema):
            assert " ".join(about.split()) in shown, (file.stem, about)


def abouts(node: dict[str, Any]) -> Iterator[str]:
    yield from [node["about"]] if "about" in node else []
    for child in node.get("fields", []):
        yield from abouts(child)


def test_facts_of_every_message(site: Path) -> None:
    names = {
        "broker": "brokers",
        "controller": "controllers",
        "zkBroker": "brokers that use ZooKeeper",
    }
    for name, fact in FACTS.items():
        shown = message_page(site, name).facts
        valid = Versions.parse(fact["validVersions"])
        flexible = Versions.parse(fact.get("flexibleVersions") or "none") & valid
        assert shown["Versions"] == of_pages(str(valid)), name
        assert shown["Flexible versions"] == of_pages(str(flexible)), name
        if "headerVersions" in fact and fact["type"] in ("request", "response"):
            header = ", ".join(
                f"{number} in {of_pages(run)}"
                for number, run in sorted(fact["headerVersions"].items(), key=lambda pair: pair[0])
            )
            assert shown[f"{fact['type'].title()} header"] == f"version {header}", name
        if fact["type"] == "request":
            listeners = " and ".join(names[one] for one in fact["listeners"])
            assert shown["Sent to"] == listeners, name
            if FACTS.get(response := name.replace("Request", "Response")):
                assert message_page(site, response).facts["Sent by"] == listeners


def test_the_release_of_every_version(site: Path) -> None:
    checked = 0
    for name, fact in FACTS.items():
        if fact["type"] not in ("request", "response") or "formerNames" in fact:
            continue
        history = {
            release: Versions.parse((text or "none").rstrip("*"))
            for release, text in fact["history"].items()
        }
        for row in message_page(site, name).table("version-table").rows:
            version = int(row.cells[0].text)
            first = next((r for r, run in history.items() if version in run), None)
            if first is None:
                continue
            shown = row.cells[1].text.split(" until ")[0].split(" (")[0]
            expected = "4.4" if "trunk" in first else first.removesuffix(".0")
            assert shown in (expected, f"≤ {expected}"), (name, version)
            checked += 1
    assert checked > 600


def test_the_index_lists_every_api(site: Path) -> None:
    table = page(site, "index.html").tables[0]
    shown = {
        row.cells[1].text: (int(row.cells[0].text), row.cells[3].text, row.cells[4].text)
        for row in table.rows
    }
    for name, fact in FACTS.items():
        if fact["type"] == "request":
            valid = Versions.parse(fact["validVersions"])
            flexible = Versions.parse(fact.get("flexibleVersions") or "none") & valid
            facts = (fact["apiKey"], of_pages(str(valid)), of_pages(str(flexible)))
            assert shown.pop(name.removesuffix("Request")) == facts
    assert not shown


# -- examples


def test_examples_have_every_field_and_are_what_the_codec_writes(site: Path) -> None:
    count = 0
    for name, fact in FACTS.items():
        shown = message_page(site, name)
        valid = Versions.parse(fact["validVersions"])
        seen: list[int] = []
        for number, details in shown.within.items():
            table = shown.tables[number]
            data = bytes.fromhex("".join(row.cells[1].text for row in table.rows))
            fields = {row.cells[2].text for row in table.rows}
            for version in range(int(details["data-low"]), int(details["data-high"]) + 1):
                assert kafkawire.decode(name, version, data).encode(version) == data
                seen.append(version)
                for field in fact["fields"]:
                    if version in versions(field["versions"], valid):
                        assert snake(field["path"].split(".")[-1]) in fields, (name, version)
            count += 1
        assert sorted(seen) == versions("0+", valid), name
    assert count > 500


def snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return {"tags": "tags"}.get(text, text)


def test_rows_of_an_example_lead_to_their_fields(site: Path) -> None:
    shown = message_page(site, "FetchRequest")
    first = min(number for number in shown.within)  # of version 18
    links = [(row.cells[2].text, row.cells[2].links) for row in shown.tables[first].rows]
    assert ("fetch_offset", ["#topics.partitions.fetch_offset"]) in links
    assert links.count(("high_watermark", ["#topics.partitions.high_watermark"])) == 2  # tag, value
    assert ("replica_epoch", ["#replica_state.replica_epoch"]) in links
    assert ("tagged fields", []) in links
    assert ("size", []) in links


# -- errors and releases


def test_every_error_code(site: Path) -> None:
    codes = json.loads((FIXTURES / "reference" / "error_codes.json").read_text("utf-8"))
    rows = page(site, "errors.html").table("error-table").rows
    yes = {True: "yes", False: "no"}
    assert [[cell.text for cell in row.cells[:4]] for row in rows] == [
        [str(c["code"]), c["name"], yes[c["retriable"]], yes[c["invalid_metadata"]]] for c in codes
    ]
    assert all(row.cells[4].text.endswith(".") for row in rows)


def test_every_error_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ErrorCode)
    assert len(set(MEANINGS.values())) == len(MEANINGS)


def test_every_release_is_listed_with_the_versions_of_its_apis(site: Path) -> None:
    written = json.loads((schemas_dir() / "releases.json").read_text("utf-8"))["releases"]
    table = page(site, "releases.html").tables[-1]
    releases = [cell.text for cell in table.head[0].cells[1:]]
    assert releases == list(written)
    shown: dict[str, dict[str, str]] = {release: {} for release in releases}
    for row in table.rows:
        api = row.cells[0].text.split()[0]
        for release, cell in zip(releases, row.cells[1:], strict=True):
            if cell.text:
                shown[release][api] = cell.text.replace("–", "-").rstrip("*")
    assert shown == written


def test_changes_of_a_release(site: Path) -> None:
    text = " ".join(page(site, "releases.html").text.split())
    section = text[text.index("84 API") : text.index("88 API")]  # of 4.0
    assert "Removed APIsControlledShutdown 0–3, LeaderAndIsr 0–7, StopReplica 0–4" in section
    assert "Metadata 13" in section


def test_kips_are_those_that_the_schemas_name(site: Path) -> None:
    texts = "".join(file.read_text("utf-8") for file in schemas_dir().glob("*.json"))
    named = {int(number) for number in re.findall(r"KIP-(\d+)", texts)}
    shown = page(site, "kips.html")
    assert {int(row.attributes["id"].removeprefix("kip-")) for row in shown.tables[0].rows} == named
    entry = message_page(site, "FetchRequest").table("version-table").rows[18 - 13]
    assert [cell.text for cell in entry.cells] == [
        "13", "3.1", "2",
        "− Topics.Topic + Topics.TopicId − ForgottenTopicsData.Topic + ForgottenTopicsData.TopicId",
        "KIP-516",
    ]  # fmt: skip


# -- the site as a whole


def test_all_links_resolve(site: Path) -> None:
    assert assert_links_resolve(site) > 12_000


def test_what_the_search_lists_is_there(site: Path) -> None:
    text = (site / "assets" / "search-data.js").read_text("utf-8")
    data = json.loads(text.partition(" = ")[2].rstrip(";\n"))
    assert {name for name, *_ in data["messages"]} == set(FACTS)
    for name, key, kind, fields in data["messages"]:
        assert (key, kind) == (FACTS[name].get("apiKey"), FACTS[name]["type"])
        ids = message_page(site, name).ids
        path: list[str] = []
        for field in fields.split():
            depth, _, field_name = field.partition(":")
            path[int(depth) :] = [snake(field_name)]
            assert ".".join(path) in ids
    assert len(data["errors"]) == len(ErrorCode)


def test_pages_are_small(site: Path) -> None:
    assert max(file.stat().st_size for file in site.rglob("*.*")) < LARGEST_PAGE
    assert sum(file.stat().st_size for file in site.rglob("*.*")) < 5_000_000


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.html"):
        shown = page(site, file.relative_to(site).as_posix())
        assert not shown.elements.keys() & {"iframe", "img", "object", "style", "embed"}
        assert "style=" not in file.read_text("utf-8")


def test_headings_and_tables_are_for_everybody(site: Path) -> None:
    for path in ("index.html", "errors.html", "messages/FetchRequest.html", "releases.html"):
        html = (site / path).read_text("utf-8")
        shown = page(site, path)
        assert shown.elements["h1"] == shown.elements["main"] == 1
        assert '<html lang="en"' in html
        assert all(
            cell.attributes.get("scope") for t in shown.tables for r in t.head for cell in r.cells
        )


def test_the_same_schemas_give_the_same_bytes(site: Path) -> None:
    command = [sys.executable, "-m", "kafkawire_cli.main", "codegen", "--target", "site"]
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    made = subprocess.run(
        [*command, "--out", str(site)], env=environment, capture_output=True, text=True, check=True
    )
    assert made.stdout.endswith(", 0 files changed\n")
