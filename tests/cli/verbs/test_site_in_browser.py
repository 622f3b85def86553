"""The pages of `--target site` in Chromium: search, versions, differences of releases, themes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from kafkawire_codegen import schemas_dir
from kafkawire_codegen.evolution import compare
from kafkawire_codegen.releases import read as read_releases
from kafkawire_codegen.versions import Versions
from tests.cli.browser import Page, browser
from tests.cli.reports import run
from tests.codegen.sites import FACTS, MARKUP, whole_site, write_hostile
from tests.codegen.sites import page as parsed
from tests.schemas import schemas

PHONE: Final = 390
pytestmark = pytest.mark.xdist_group("site")
RELEASES: Final = read_releases(schemas_dir() / "releases.json")
SCHEMAS: Final = list(schemas())
SHOWN: Final = MARKUP.replace("\x00", r"\x00").replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")
MAIN_PAGES: Final = (
    *("index.html", "names.html", "errors.html", "releases.html", "kips.html", "types.html"),
    *("diff.html?from=3.9&to=4.0", "messages/FetchRequest.html", "messages/FetchRequest.html?v=12"),
    *("messages/UpdateMetadataRequest.html", "messages/RequestHeader.html"),
)
CONTRAST: Final = """
(() => {
  const channel = (c) => c <= 10 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const read = (text) => text.startsWith("rgb(") ? text.match(/[\\d.]+/g).map(Number) : null;
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = read(getComputedStyle(e).backgroundColor);
      if (colour) return colour;
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.offsetParent) continue;
    const front = read(getComputedStyle(element).color);
    const [a, b] = [light(front), light(behind(element))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < worst[0]) worst = [ratio, element.outerHTML.slice(0, 80)];
  }
  return worst;
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_site(tmp_path_factory.getbasetemp() / "whole-site")


def visit(page: Page, site: Path, address: str, *, dark: bool = False, width: int = 1280) -> None:
    """Open a page of the site; it must load nothing from elsewhere, and report nothing."""
    path, _, query = address.partition("?")
    page.open((site / path).as_uri() + (f"?{query}" if query else ""), dark=dark, width=width)
    assert page.messages == []
    assert all(one.startswith((site.as_uri(), "about:", "data:")) for one in page.requests)


def press(page: Page, key: str, text: str = "") -> None:
    code = {"Enter": 13, "Escape": 27, "ArrowDown": 40}.get(key, 0)
    more = {"text": text} if text else {}
    page.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
    page.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


def search(page: Page, text: str) -> list[tuple[str, str, str]]:
    """Type into the search; return the results: text, note and link."""
    page.do("document.getElementById('search-input').focus()")
    page.do("document.getElementById('search-input').value = ''")
    page.call("Input.insertText", text=text)
    page.wait("!document.getElementById('search-results').hidden")
    found = page.do(
        "[...document.querySelectorAll('#search-results [role=option]')].map((item) => "
        "[item.firstChild.textContent, item.querySelector('span').textContent, item.dataset.link])"
    )
    return [tuple(one) for one in found]


# -- search


def test_slash_searches_and_enter_opens(page: Page, site: Path) -> None:
    visit(page, site, "messages/HeartbeatRequest.html")
    press(page, "/", "/")
    assert page.do("document.activeElement.id") == "search-input"
    page.call("Input.insertText", text="fetch offset")
    page.wait("document.querySelectorAll('#search-results [role=option]').length > 2")
    first = page.do("document.querySelector('#search-results [aria-selected=true]').textContent")
    assert first == "Topics.Partitions.FetchOffsetFetchRequest"
    press(page, "Enter", "\r")
    page.wait("location.pathname.endsWith('/FetchRequest.html')")
    page.wait("document.documentElement.dataset.ready === 'yes'")
    assert page.do("location.hash") == "#topics.partitions.fetch_offset"
    assert page.do("document.querySelector(':target .name').textContent") == "FetchOffset"


def test_search_finds_messages_fields_errors_and_kips(page: Page, site: Path) -> None:
    visit(page, site, "index.html")
    assert [text for text, *_ in search(page, "fetch")[:2]] == ["FetchRequest", "FetchResponse"]
    assert search(page, "18")[0][:2] == ("ApiVersionsRequest", "request 18")
    assert search(page, "UNKNOWN_TOPIC_ID")[0][:2] == ("UNKNOWN_TOPIC_ID", "error code 100")
    assert search(page, "kip-516")[0][:2] == ("KIP-516", "Kafka improvement proposal")
    found = {note for _, note, _ in search(page, "high_watermark")}
    assert found > {"FetchRequest", "FetchResponse"}
    assert search(page, "metadataresponse leader epoch")[0][:2] == (
        "Topics.Partitions.LeaderEpoch",
        "MetadataResponse",
    )
    assert search(page, "no such thing") == []
    assert page.do("document.querySelector('.nothing').textContent") == "Nothing found"
    press(page, "Escape")
    assert page.do("document.getElementById('search-results').hidden") is True


def test_results_lead_somewhere(page: Page, site: Path) -> None:
    visit(page, site, "index.html")
    texts = ("id", "epoch", "error", "key", "a", "isr")
    links = {link for text in texts for *_, link in search(page, text)}
    assert len(links) > 100
    for link in links:
        path, _, anchor = link.partition("#")
        assert anchor == "" or anchor in parsed(site, path).ids, link


# -- versions


def shown_fields(page: Page) -> list[str]:
    found = page.do(
        "[...document.querySelectorAll('#field-table tbody tr')].filter((row) => row.offsetParent)"
        ".map((row) => row.id)"
    )
    assert isinstance(found, list)
    return found


def fields_of(name: str, version: int) -> int:
    """Count the fields of a version, by the protocol's facts."""
    return sum(version in Versions.parse(field["versions"]) for field in FACTS[name]["fields"])


def test_a_version_in_the_address(page: Page, site: Path) -> None:
    visit(page, site, "messages/FetchRequest.html?v=12")
    shown = shown_fields(page)
    assert len(shown) == fields_of("FetchRequest", 12)
    assert "topics.topic" in shown
    assert "topics.topic_id" not in shown
    heads = "[...document.querySelectorAll('#field-table thead th')]"
    heads += ".filter((one) => one.offsetParent)"
    assert page.do(f"{heads}.map((one) => one.textContent)") == ["Field", "12"]
    examples = "[...document.querySelectorAll('.example')].filter((one) => one.offsetParent)"
    assert page.do(f"{examples}.map((one) => one.dataset.low)") == ["12"]
    assert page.do("document.querySelector('#version-table .chosen').id") == "version-12"
    pair = "[...document.querySelectorAll('.pair a')].map((one) => one.search)"
    assert page.do(pair) == ["?v=12", "?v=12"]


def test_versions_are_chosen_and_kept_in_the_address(page: Page, site: Path) -> None:
    visit(page, site, "messages/FetchRequest.html")
    everything = len(shown_fields(page))
    assert everything == len(FACTS["FetchRequest"]["fields"])
    page.do("document.querySelector('#field-table thead th[data-low=\"5\"] a').click()")
    assert page.do("document.getElementById('version-select').value") == "5"
    for version in (6, 7):
        page.do("document.getElementById('version-newer').click()")
        assert page.do("location.search") == f"?v={version}"
        assert len(shown_fields(page)) == fields_of("FetchRequest", version)
    page.do(
        "(() => { const s = document.getElementById('version-select'); s.value = '';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert len(shown_fields(page)) == everything
    assert page.do("location.search") == ""


@pytest.mark.parametrize("version", ["99", "x", "-1", "", "1e1", "<b>"])
def test_a_version_that_is_not_there(page: Page, site: Path, version: str) -> None:
    visit(page, site, f"messages/FetchRequest.html?v={quote(version)}")
    assert len(shown_fields(page)) == len(FACTS["FetchRequest"]["fields"])


def test_a_link_to_a_field_that_the_version_lacks(page: Page, site: Path) -> None:
    address = "messages/FetchRequest.html"
    page.open((site / address).as_uri() + "?v=3#topics.topic_id")
    assert "topics.topic_id" in shown_fields(page)


# -- the difference of two releases


PAIRS: Final = (
    ("2.2", "2.3"),
    ("3.9", "4.0"),
    ("4.0", "4.1"),
    ("4.1", "4.0"),
    ("2.2", "trunk"),
    ("4.3", "4.4"),
    ("3.5", "3.6"),
    ("4.2", "4.2"),
)


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_differences_are_those_of_schema_diff(
    page: Page, site: Path, before: str, after: str
) -> None:
    expected = compare(RELEASES.at(before, SCHEMAS), RELEASES.at(after, SCHEMAS))
    visit(page, site, f"diff.html?from={before}&to={after}")
    shown = lists(page)
    assert shown.pop("diff-added", []) == [*expected.added]
    assert shown.pop("diff-removed", []) == [*expected.removed]
    assert shown.pop("diff-broken", []) == [
        f"{one.path}: {one.reason} [{one.rule}]" for one in expected.breaches
    ]
    changed = {one.name: [line.strip() for line in one.lines()][1:] for one in expected.changed}
    assert shown == {f"diff-{name}": lines for name, lines in changed.items()}
    summary = page.do("document.getElementById('diff-summary').textContent")
    counts = (expected.added, expected.removed, expected.changed, expected.breaches)
    assert [int(word) for word in summary.split() if word.isdigit()] == [*map(len, counts)]


def test_the_page_shows_what_the_command_prints(page: Page, site: Path) -> None:
    visit(page, site, "diff.html?from=4.0&to=4.1")
    command = page.do("document.getElementById('diff-command').textContent")
    printed = run(*command.split()[1:]).stdout.splitlines()
    for lines in lists(page).values():
        for line in lines:
            assert any(line in one for one in printed) or "[" in line


def lists(page: Page) -> dict[str, list[str]]:
    found = page.do(
        "Object.fromEntries([...document.querySelectorAll('#diff-result ul')]"
        ".map((list) => [list.id, [...list.children].map((item) => item.textContent)]))"
    )
    assert isinstance(found, dict)
    return found


def test_releases_are_chosen_and_swapped(page: Page, site: Path) -> None:
    visit(page, site, "diff.html?from=3.9&to=nonsense")
    assert page.do("location.search") == "?from=3.9&to=nonsense"
    chosen = "['diff-from', 'diff-to'].map((id) => document.getElementById(id))"
    chosen += ".map((select) => select.selectedOptions[0].text)"
    assert page.do(chosen) == ["3.9", "trunk"]
    page.do("document.getElementById('diff-swap').click()")
    assert page.do(chosen) == ["trunk", "3.9"]
    assert page.do("location.search") == "?from=trunk&to=3.9"


# -- looks


@pytest.mark.parametrize("address", MAIN_PAGES)
def test_pages_fit_a_phone_and_can_be_read(page: Page, site: Path, address: str) -> None:
    for dark in (False, True):
        visit(page, site, address, dark=dark, width=PHONE)
        assert page.do("document.documentElement.scrollWidth") <= PHONE
        worst, where = page.do(CONTRAST)
        assert worst >= 4.5, where


def test_the_theme_follows_the_system_and_can_be_switched(page: Page, site: Path) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    visit(page, site, "index.html", dark=True)
    dark = page.do(back)
    visit(page, site, "index.html")
    assert page.do(back) != dark
    page.do("document.getElementById('theme-button').click()")
    assert page.do(back) == dark
    page.do("document.getElementById('theme-button').click()")
    assert page.do(back) != dark


# -- hostile schemas


def test_hostile_schemas(page: Page, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = write_hostile(tmp_path_factory.getbasetemp() / "hostile-site")
    addresses = ["index.html", "names.html", "releases.html", "diff.html"]
    addresses += ["messages/BadRequest.html?v=2", "messages/EveryDefault.html"]
    for address in addresses:
        visit(page, out, address, width=PHONE)
        assert page.do("document.title").endswith(SHOWN)
        assert page.do("document.querySelectorAll('img, main script').length") == 0
        assert page.do("document.documentElement.scrollWidth") <= PHONE
    visit(page, out, "messages/BadRequest.html?v=2")
    found: Any = page.do("document.querySelector('#text p').textContent")
    assert found == SHOWN
    assert search(page, "inner")[0][:2] == ("Struct.Inner", "BadRequest")
    visit(page, out, f"diff.html?from={quote(MARKUP)}&to={quote('a b')}")
    assert lists(page) == {
        "diff-BadRequest": ["+ versions 2", "~ latestVersionUnstable none -> yes"],
    }
