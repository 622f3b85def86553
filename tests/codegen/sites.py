"""Makes sites with `--target site` and reads their pages."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from typer.testing import CliRunner

from kafkawire_cli.main import app
from tests.conftest import FIXTURES

from . import hostile
from .html_pages import Page, read

KAFKAS_WIKI: Final = "https://cwiki.apache.org/confluence/"


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FIXTURES / "reference" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as text:
        yield from map(json.loads, text)


FACTS: Final = {fact["name"]: fact for fact in lines("protocol_facts")}
MARKUP: Final = (
    "<b>bold</b><img src=x onerror=alert(1)></script><script>document.title='owned'</script>"
    '</p></table></main>" onmouseover="alert(1)" \' {{ 7 * 7 }} {% x %} &lt; ]]> -->'
    " \x00\x1b[31m\u202e"
)


OWN: Final = hostile.message(
    "PingRequest",
    hostile.field("Count", "int32", "1+", default="7", about="How often."),
    hostile.field("ErrorCode", "int16"),
    type="request",
    apiKey=900,
)


def codegen(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["codegen", "--target", "site", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@cache
def whole_site(out: Path) -> Path:
    """Make the site of all our messages, once in a process."""
    assert codegen("--out", out).startswith("292 messages, 305 files in ")
    return out


@cache
def page(site: Path, path: str) -> Page:
    return read(site / path)


def assert_links_resolve(out: Path) -> int:
    pages = {file: page(out, file.relative_to(out).as_posix()) for file in out.rglob("*.html")}
    count = 0
    for file, shown in pages.items():
        assert len(shown.ids) == len(set(shown.ids)), file
        assert not any(re.search(r"[\s<>]", identifier) for identifier in shown.ids)
        for link in shown.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert link.startswith((KAFKAS_WIKI, "data:")), link
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            assert target.is_file(), (file, link)
            if parts.fragment:
                assert unquote(parts.fragment) in pages[target].ids, (file, link)
            count += 1
    return count


def hostile_documents() -> list[hostile.Document]:
    inner = [hostile.field("Inner", "string", about=MARKUP, default=MARKUP)]
    bad = hostile.message(
        "BadRequest",
        hostile.field("Text", "string", about=MARKUP, default=MARKUP),
        hostile.field("Struct", "[]Inside", about=MARKUP, fields=inner),
        type="request",
        apiKey=901,
        about=MARKUP,
    )
    return [*hostile.COLLECTED, bad, OWN]


@cache
def write_hostile(folder: Path) -> Path:
    """Write hostile schemas with hostile releases, and make their site, once in a process."""
    schemas = hostile.write(folder / "schemas", hostile_documents())
    versions_of = {
        MARKUP: {"Bad": "0-1", MARKUP: "0", "Ping": "0-1"},
        "a b": {"Bad": "0-2", "Ping": "0-1"},
    }
    releases = {"releases": versions_of, "unstable": {"a b": {"Bad": "2", "Ping": "0"}}}
    (schemas / "releases.json").write_text(json.dumps(releases), "utf-8")
    codegen("--schemas", schemas, "--out", folder / "out", "--package", MARKUP)
    return folder / "out"
