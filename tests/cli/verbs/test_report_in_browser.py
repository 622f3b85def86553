"""The page of `kafkawire report` in Chromium: charts, filters, themes, and hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import kafkawire
from tests.capture.written import Scenario
from tests.cli.browser import Page, browser
from tests.cli.reports import report, run
from tests.conftest import FIXTURES
from tests.reports.diagnosis.stories import Story, batch

CAPTURE: Final = FIXTURES / "captures" / "ck-group-range.pcap"
MARKUP: Final = (
    "<b>bold</b><img src=x onerror=alert(1)></script><script>document.title='owned'</script>"
    "<a href='javascript:alert(1)'>$x$ %{y} {{script}} &lt;\u2028"
)
SHOWN: Final = MARKUP.replace("\u2028", r"\u2028")
PHONE: Final = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": False}
CHARTS: Final = (
    "requests",
    "bytes",
    "latency",
    "percentiles",
    "split",
    "errors",
    "group",
    "lag",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def written(tmp_path_factory: pytest.TempPathFactory, *captures: Path) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    result = run("report", *captures, "-o", out, "--port", "9092")
    assert result.exit_code == 0, result.output
    return out.as_uri()


@pytest.fixture(scope="module")
def group_range(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    assert run("report", CAPTURE, "-o", out).exit_code == 0
    return out.as_uri()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    scenario = Scenario()
    made = kafkawire.from_json(
        "ApiVersionsRequest", 3, {"clientSoftwareName": MARKUP, "clientSoftwareVersion": MARKUP}
    )
    scenario.send(0, kafkawire.encode_frame(made, 3, 1, client_id=MARKUP))
    scenario.last_request = 1
    scenario.respond("ApiVersions", 0, errorCode=35)
    named: dict[str, Any] = {"groupId": MARKUP, "memberId": MARKUP}
    scenario.request("Metadata", 4, topics=[{"name": MARKUP}], allowAutoTopicCreation=True)
    scenario.respond("Metadata", 4, topics=[{"name": MARKUP, "errorCode": 3}])
    protocols = [{"name": MARKUP, "metadata": "AAAA"}]
    scenario.request("JoinGroup", 5, protocolType=MARKUP, protocols=protocols, **named)
    members = [{"memberId": MARKUP, "metadata": "AAAA"}]
    scenario.respond(
        "JoinGroup", 5, memberId=MARKUP, leader=MARKUP, protocolName=MARKUP, members=members
    )
    partitions = [{"partitionIndex": 0, "committedOffset": 5, "committedMetadata": MARKUP}]
    scenario.request(
        "OffsetCommit", 7, topics=[{"name": MARKUP, "partitions": partitions}], **named
    )
    scenario.respond(
        "OffsetCommit", 7, topics=[{"name": MARKUP, "partitions": [{"partitionIndex": 0}]}]
    )
    batches = [{"name": MARKUP, "partitionData": [{"index": 0, "records": batch()}]}]
    scenario.request("Produce", 8, client_id=MARKUP, acks=-1, topicData=batches)
    errors = [{"name": MARKUP, "partitionResponses": [{"index": 0, "errorCode": 3}]}]
    scenario.respond("Produce", 8, responses=errors)
    folder = tmp_path_factory.mktemp("hostile") / "<b>bold<b>"
    folder.mkdir()
    return written(tmp_path_factory, scenario.save(folder / "c.pcap"))


def assert_quiet(page: Page, address: str) -> None:
    """Check that nothing was loaded, refused or reported."""
    assert page.do("document.documentElement.dataset.errors") is None
    assert page.do("document.documentElement.dataset.resources") == "0"
    assert page.messages == []
    loaded = [one for one in page.requests if not one.startswith(("about:", "data:", "blob:"))]
    assert [one.partition("#")[0] for one in loaded] == [address.partition("#")[0]]


def tile(page: Page, name: str) -> int:
    """Return a number of the overview."""
    found = page.do(
        f"[...document.querySelectorAll('.tile')].find((one) => "
        f"one.querySelector('span').textContent === {name!r}).querySelector('b').textContent"
    )
    return int(str(found).replace(",", ""))


def rows(page: Page, table: str) -> list[list[str]]:
    """Return the cells of a table."""
    found = page.do(
        f"[...document.querySelectorAll('#{table} tbody tr')].map((row) => "
        "[...row.children].map((cell) => cell.textContent))"
    )
    assert isinstance(found, list)
    return found


def test_every_chart_is_drawn_and_nothing_is_loaded(page: Page, group_range: str) -> None:
    page.open(group_range)
    for chart in CHARTS:
        drawn = f"document.querySelectorAll('#chart-{chart} .main-svg').length"
        assert page.do(drawn) > 0, chart
    bars = "document.querySelectorAll('#chart-requests .point path').length"
    assert page.do(bars) > 20
    assert page.do("document.querySelectorAll('#chart-latency .hm image').length") == 1
    assert page.do("document.querySelectorAll('#chart-group .point path').length") >= 5
    assert_quiet(page, group_range)


def test_the_page_cannot_load_anything(page: Page, group_range: str) -> None:
    page.open(group_range)
    refused = "fetch('http://127.0.0.1:1/x').then(() => 'loaded', (error) => String(error))"
    assert "Failed to fetch" in page.do(refused)
    assert "connect-src" in page.do("document.documentElement.dataset.errors")
    inline = (
        "const made = document.createElement('script'); made.textContent = 'window.ran = true';"
        "document.body.append(made); Boolean(window.ran)"
    )
    assert page.do(f"(() => {{ {inline.replace('Boolean', 'return Boolean')} }})()") is False


def test_filters_by_api_client_and_topic(page: Page, group_range: str) -> None:
    page.open(group_range)
    calls = {one["api_name"]: one for one in report("latency", CAPTURE)["calls"]}
    assert tile(page, "requests") == sum(one["requests"] for one in calls.values())
    page.do(
        "(() => { const one = document.getElementById('filter-api');"
        "one.value = [...one.options].find((each) => each.textContent === 'Heartbeat').value;"
        "one.dispatchEvent(new Event('change')); })()"
    )
    assert tile(page, "requests") == calls["Heartbeat"]["requests"]
    assert {row[1] for row in rows(page, "table-slowest")} == {"Heartbeat v3"}
    legend = (
        "[...document.querySelectorAll('#chart-requests .legendtext')].map((o) => o.textContent)"
    )
    assert page.do(legend) in ([], ["Heartbeat"])
    assert page.do("location.hash") == "#api=Heartbeat"
    page.open(f"{group_range}#client=cons-A")
    by_client = report("latency", CAPTURE, options=("--by", "client"))["calls"]
    wanted = [one["requests"] for one in by_client if one["client"] == "cons-A"]
    assert tile(page, "requests") == sum(wanted)
    assert {row[0] for row in rows(page, "table-clients")} == {"cons-A"}
    page.open(f"{group_range}#topic=g-topic")
    assert 0 < tile(page, "requests") < 139
    page.do("document.getElementById('reset').click()")
    assert tile(page, "requests") == 139
    assert_quiet(page, group_range)


def test_zoom_of_one_chart_is_that_of_all_over_time(page: Page, group_range: str) -> None:
    page.open(group_range)
    page.do(
        "Plotly.relayout('chart-bytes', {'xaxis.range[0]': '2026-11-21 03:58:30', "
        "'xaxis.range[1]': '2026-11-21 03:58:32'}).then(() => null)"
    )
    for chart in ("requests", "latency", "errors"):
        page.wait(
            f"String(document.getElementById('chart-{chart}').layout.xaxis.range[0])"
            ".startsWith('2026-11-21 03:58:30')"
        )


def test_themes(page: Page, group_range: str) -> None:
    theme = "document.documentElement.dataset.theme"
    back = "document.getElementById('chart-requests').layout.paper_bgcolor"
    page.open(group_range, dark=True)
    assert page.do(theme) == "dark"
    dark = page.do(back)
    page.do("document.getElementById('theme').click()")
    assert page.do(theme) == "light"
    assert page.do(back) != dark
    page.open(group_range)
    assert page.do(theme) == "light"


def test_slowest_exchanges_link_to_their_bodies(page: Page, group_range: str) -> None:
    page.open(group_range)
    page.do("document.querySelector('#table-slowest a').click()")
    page.wait("document.querySelector('details[open] pre')")
    shown = page.do("[...document.querySelectorAll('details[open] pre')].map((o) => o.textContent)")
    assert '"name": "g-topic"' in shown[0]  # of Metadata: JoinGroup waits for other members
    assert '"brokers"' in shown[1]


def test_groups(page: Page, group_range: str) -> None:
    page.open(group_range)
    found = rows(page, "table-rebalances")
    assert [(row[5], row[6]) for row in found] == [
        ("a member joins", "cons-A"),
        ("a member joins", "cons-B"),
    ]
    shown = [[text.removeprefix("2026-11-21 03:58:") for text in row[:5]] for row in found]
    assert shown == [  # duration: end less start; unavailable: end less when consumption stopped
        ["27.152000", "27.152000", "30.154000", "3 s", "3 s"],
        ["31.115000", "31.155000", "36.116000", "5 s", "4.96 s"],
    ]
    names = "[...document.querySelectorAll('#chart-group .ytick text')].map((o) => o.textContent)"
    assert {"cons-A", "cons-B", "rebalances"} <= set(page.do(names))
    page.open(f"{group_range}#rows=partitions")
    assert {"g-topic-0", "g-topic-3"} <= set(page.do(names))


def test_nothing_is_wider_than_a_phone(page: Page, group_range: str) -> None:
    page.open(group_range, width=380)
    assert page.do("document.documentElement.scrollWidth") <= 380
    widths = "[...document.querySelectorAll('.main-svg')].map((one) => one.clientWidth)"
    assert max(page.do(widths)) <= 380
    page.call("Emulation.setDeviceMetricsOverride", **{**PHONE, "width": 330})
    page.wait(f"Math.max(...{widths}) <= 330")


def test_hostile_names_stay_text(page: Page, hostile: str) -> None:
    page.open(f"{hostile}#by=client")
    assert page.do("document.title") == "kafkawire report"
    assert page.do("document.querySelectorAll('main img, main svg a, .tile ~ script').length") == 0
    assert page.do("[...document.querySelectorAll('a')].every((o) => o.hash)")
    assert page.do("document.querySelectorAll('script').length") == 3
    assert {row[0] for row in rows(page, "table-topics")} == {SHOWN}
    assert SHOWN in {row[0] for row in rows(page, "table-clients")}
    for place in ("filter-client", "filter-topic", "group"):
        options = f"[...document.getElementById('{place}').options].map((one) => one.textContent)"
        assert SHOWN in page.do(options), place
    text = "[...document.querySelectorAll('svg text')].map((one) => one.textContent).join('|')"
    assert "<b>bold</b><img" in page.do(text)
    assert page.do("document.querySelectorAll('svg tspan[style*=bold]').length") == 0
    page.do("document.querySelector('#table-slowest a').click()")
    page.wait("document.querySelector('details[open] pre')")
    assert_quiet(page, hostile)


def test_records_that_were_refused_have_a_column_where_there_are_any(
    page: Page, tmp_path_factory: pytest.TempPathFactory, group_range: str
) -> None:
    heads = "[...document.querySelectorAll('#table-topics th')].map((one) => one.textContent)"
    page.open(group_range)
    assert not [head for head in page.do(heads) if "refused" in head or "response" in head]
    for incident, title, records in (
        ("rejected-records", "records refused", "5"),
        ("produce-retries", "records without response", "15"),
    ):
        capture = FIXTURES / "incidents" / f"{incident}.pcap.gz"
        page.open(written(tmp_path_factory, capture))
        columns = [column for column, head in enumerate(page.do(heads)) if title in head]
        assert [rows(page, "table-topics")[0][column] for column in columns] == [records]


def test_a_capture_without_kafka(page: Page, tmp_path_factory: pytest.TempPathFactory) -> None:
    scenario = Scenario()
    scenario.send(0, b"GET / HTTP/1.1\r\n\r\n").close()
    folder = tmp_path_factory.mktemp("none")
    path = scenario.save(folder / "none.pcap")
    address = written(tmp_path_factory, path)
    page.open(address)
    assert "No consumer groups" in page.do("document.getElementById('chart-group').textContent")
    problems = report("summary", path, options=("--port", "9092"))["problems"]
    assert tile(page, "problems in decoding") == sum(each["count"] for each in problems)
    assert_quiet(page, address)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A capture of more clients and topics than the picture has room for."""
    story = Story()
    for number in range(16):
        name = f"{number}-of-the-warehouse-and-the-shop"
        story.produce(client_id=f"producer-{name}", topic=f"topic-{name}", code=3 * (number == 2))
        story.fetch(batch(), client_id=f"consumer-{name}", topic=f"topic-{name}")
    return written(tmp_path_factory, story.save(tmp_path_factory.mktemp("busy") / "c.pcap"))


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_the_picture_of_producers_and_consumers(
    width: int, dark: bool, page: Page, busy: str
) -> None:
    page.open(busy, dark=dark, width=width)
    place = "document.getElementById('picture-topology')"
    assert page.do(f"{place}.querySelectorAll('path').length") == 26  # 12 of each kind, and others
    titles = page.do(f"[...{place}.querySelectorAll('path')].map((one) => one.textContent)")
    reds = f"[...{place}.querySelectorAll('path[stroke=\"#d9534f\"]')]"
    assert page.do(f"{reds}.map((one) => one.textContent)") == [
        title for title in titles if "error" in title
    ]
    assert sum("error" in title for title in titles) == 1
    outside = (
        f"(() => {{ const box = {place}.getBoundingClientRect();"
        f"return [...{place}.querySelectorAll('text')].filter((one) => {{"
        "const own = one.getBoundingClientRect();"
        "return own.left < box.left - 1 || own.right > box.right + 1; }).length; })()"
    )
    assert page.do(outside) == 0
    assert page.do("document.documentElement.scrollWidth") <= width
    assert len(rows(page, "table-topology")) == 15
    assert_quiet(page, busy)


INCIDENTS: Final = ("log-truncation", "rebalance-storm", "sequence-errors", "healthy")
"""Captures with many findings, with rebalances, and with none."""
SENTENCES: Final = ("findings", "rebalances", "absences", "problems")
"""Tables of which every cell is on the screen, however narrow it is."""
FAINT: Final = """
(() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([red, green, blue]) => [red, green, blue].map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (place) => {
    const colour = numbers(getComputedStyle(place).backgroundColor);
    return colour.length === 3 || colour[3] === 1 ? colour : behind(place.parentElement);
  };
  const ratio = (place) => {
    const style = getComputedStyle(place), svg = place.namespaceURI.endsWith("svg");
    const text = svg ? style.fill : style.color, back = svg ? place.closest("section") : place;
    const both = [light(numbers(text)), light(behind(back))];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  };
  const own = (place) =>
    [...place.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
  const isShown = (place) =>
    place.getClientRects().length && !place.closest("script, style, option");
  return [...document.querySelectorAll("body *")]
    .filter((one) => own(one) && isShown(one))
    .filter((one) => ratio(one) < 4.5)
    .map((one) => `${one.tagName} ${one.textContent.slice(0, 40)}: ${ratio(one).toFixed(2)}`);
})()
"""
"""Texts whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3)."""
OUTSIDE: Final = (
    "[...document.querySelectorAll('#table-{table} td, #table-{table} th')].filter((one) => "
    "one.getClientRects().length && (one.getBoundingClientRect().right > {width} + 1 || "
    "one.scrollWidth > one.clientWidth + 1)).map((one) => one.textContent)"
)


@pytest.fixture(scope="module", params=INCIDENTS)
def incident(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory, FIXTURES / "incidents" / f"{request.param}.pcap.gz")


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_everything_can_be_read(width: int, dark: bool, page: Page, incident: str) -> None:
    """Nothing is cut off or faint, and no sentence is beside the screen."""
    page.open(incident, dark=dark, width=width)
    assert page.do("document.documentElement.scrollWidth") <= width
    for table in SENTENCES:
        assert page.do(OUTSIDE.format(table=table, width=width)) == [], table
    assert page.do(FAINT) == []
    assert_quiet(page, incident)


def test_names_in_the_picture_are_text(page: Page, hostile: str) -> None:
    page.open(hostile)
    place = "document.getElementById('picture-topology')"
    assert page.do(f"{place}.querySelectorAll('b, img, a, script').length") == 0
    assert SHOWN in page.do(f"[...{place}.querySelectorAll('title')].map((one) => one.textContent)")
    assert_quiet(page, hostile)
