"""The table of `decode`: files, times, dates, widths, colours."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafkawire.capture import decode_capture
from kafkawire.capture.multifile import first_time
from kafkawire.capture.rows import Row, Status
from kafkawire.display import text_width
from kafkawire_cli.input.inputs import Entry
from kafkawire_cli.main import app
from kafkawire_cli.render.message_table.legend import (
    MAX_CONNECTIONS,
    Connections,
    add_connection,
    legend,
)
from kafkawire_cli.render.message_table.lines import lines
from kafkawire_cli.render.message_table.style import Colour, Times, fitted, heading, style
from tests.cli.reports import on_a_terminal
from tests.conftest import FIXTURES

CAPTURES = FIXTURES / "captures"
KCAT, GROUP = str(CAPTURES / "kcat-kf.pcap"), str(CAPTURES / "ck-group-range.pcap")
SECOND = 10**9
DAY = 86_400 * SECOND
NOON = 1_767_355_200 * SECOND  # 2026-01-02T12:00:00Z
SGR = re.compile(r"\x1b\[\d+m")


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["decode", *arguments, "--format", "table"])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def entry(time_ns: int, *, capture: str = "a.pcap", client: str = "me", error: str = "") -> Entry:
    status = Status.MALFORMED if error else Status.OK
    row = Row(7, time_ns, "request", 20, status, error, 1, "Fetch", 12, 5, client)
    return Entry(capture, 3, "10.0.0.1:5", "10.0.0.2:9092", row, NOON)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# -- times


def test_the_date_is_shown_where_it_changes() -> None:
    text = lines(fitted())
    shown = [text(entry(NOON + at)) for at in (0, SECOND, DAY, 2 * DAY - 1, 0)]
    days = [part.split("\n")[0].strip() if part.count("\n") == 2 else None for part in shown]
    assert days == ["2026-01-02", None, "2026-01-03", "2026-01-04", "2026-01-02"]
    assert all(" 12:00:0" in part or "11:59:59.999999" in part for part in shown)
    assert "time (UTC)" in heading(fitted())


def test_times_of_messages_without_one_are_empty() -> None:
    text = lines(fitted())
    without, _, _ = text(entry(0)).partition("->")
    assert without.split() == ["7", "3"]
    with_time = text(entry(NOON))
    assert "2026-01-02\n" in with_time
    assert len(without) == len(with_time.splitlines()[-1].partition("->")[0])
    assert text(entry(0)).count("\n") == 1
    assert text(entry(NOON + 1)).count("\n") == 1  # the same day as before


@pytest.mark.usefixtures("berlin")
def test_local_times_have_their_zone() -> None:
    look = fitted(Times.LOCAL)
    assert "time (CET)" in heading(look) or "time (CEST)" in heading(look)
    assert lines(look)(entry(NOON)).splitlines()[0].strip() == "2026-01-02 CET (UTC+0100)"
    assert " 13:00:00.000000 " in lines(look)(entry(NOON))
    summer = lines(look)(entry(NOON + 180 * DAY))
    assert "CEST (UTC+0200)" in summer
    assert " 14:00:00.000000 " in summer


def test_relative_times_and_differences() -> None:
    relative, delta = lines(fitted(Times.RELATIVE)), lines(fitted(Times.DELTA))
    for at, since, after in ((1, "1.000000", "0.000000"), (3, "3.000000", "2.000000")):
        assert relative(entry(NOON + at * SECOND)).split()[1] == since
        assert delta(entry(NOON + at * SECOND)).split()[1] == after
    assert lines(fitted(Times.DELTA), NOON)(entry(NOON + 2000)).split()[1] == "0.000002"
    shown = run(KCAT, "--time", "relative").splitlines()
    rows = list(decode_capture(KCAT))
    assert shown[0].split()[1:3] == ["since", "start"]
    assert float(shown[1].split()[1]) == pytest.approx(
        (rows[0].row.time_ns - first_time(KCAT)) / 1e9, abs=1e-6
    )


@pytest.mark.parametrize("times", Times)
def test_several_processes_print_the_same(times: Times) -> None:
    given = [KCAT, GROUP, "--time", times.value, "--color", "always"]
    alone = run(*given)
    assert run(*given, "--jobs", "2") == alone
    assert run(*given, "--jobs", "4") == alone


def test_options_of_the_table_need_it() -> None:
    for given in (("--time", "delta"), ("--color", "always")):
        result = CliRunner().invoke(app, ["decode", KCAT, "--format", "jsonl", *given])
        assert result.exit_code == 2
        assert "only allowed with --format table" in result.stderr


# -- files


def test_several_files_have_a_column() -> None:
    shown = run(KCAT, GROUP).splitlines()
    assert shown[0].startswith("file ")
    assert {line.split()[0] for line in shown[1:]} == {
        "kcat-kf.pcap", "ck-group-range.pcap", "2026-11-21",
    }  # fmt: skip
    assert not run(KCAT).startswith("file")


def test_files_of_the_same_name_have_their_paths(tmp_path: Path) -> None:
    paths = [tmp_path / name / "trace.pcap" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(Path(KCAT).read_bytes())
    shown = run(*map(str, paths))
    for path in paths:
        assert f"{path.parent.name}/trace.pcap " in shown


# -- width


HOSTILE = "\x1b[31m\u202e" + "\u4e16\u754c" * 9 + "x" * 300


@pytest.mark.parametrize("width", [20, 40, 79, 80, 104, 105, 129, 130, 250])
@pytest.mark.parametrize("files", [(), (("a.pcap", "a.pcap"), ("b", HOSTILE))])
@pytest.mark.parametrize("client", ["me", "c" * 500, HOSTILE])
def test_no_line_is_wider_than_the_terminal(
    width: int, files: tuple[tuple[str, str], ...], client: str
) -> None:
    for times in Times:
        plain = fitted(times, width, files=files)
        for capture, error in (("a.pcap", ""), ("b", "invalid " * 40)):
            one = entry(NOON, capture=capture, client=client, error=error)
            text = lines(plain)(one)
            message = text.splitlines()[-1]
            assert text_width(message) <= width
            assert "\x1b" not in text
            coloured = lines(plain._replace(colour=True))(one)
            assert SGR.sub("", coloured) == text
            if len(client) > width:
                assert message.endswith("...")
    assert text_width(heading(plain)) <= width


def narrow_rows(capture: str, api: str, width: int = 80) -> list[str]:
    """Return the content of the rows of an API in a narrow table, with the arrow."""
    text = lines(fitted(width=width))
    shown = []
    for one in decode_capture(capture):
        line = text(Entry(capture, one.connection, one.client, one.broker, one.row))
        assert max(map(text_width, line.splitlines())) <= width
        if one.row.api_name == api:
            shown.append(" ".join(line.partition("->" if "->" in line else "<-")[2].split()))
    return shown


def test_values_are_seen_at_80_columns() -> None:
    requests, responses = (narrow_rows(KCAT, "Produce")[first::2] for first in (0, 1))
    assert requests[:2] == ["Produce rdkafka kc-1 1 record", "Produce rdkafka kc-0 1 record"]
    assert [each.partition("ms ")[2] for each in responses[:4]] == [
        f"rdkafka kc-{partition} offset {offset}" for offset in (0, 1) for partition in (1, 0)
    ]
    commits = narrow_rows(GROUP, "OffsetCommit")
    assert (
        "OffsetCommit cons-A group grp-range g-topic-0 offset 15, g-topic-1 offset 15, +2"
        in commits
    )
    joined = narrow_rows(GROUP, "JoinGroup")
    assert "JoinGroup cons-A group grp-range" in joined
    assert any(each.endswith(" generation 2") for each in joined)
    fetched = [each for each in narrow_rows(KCAT, "Fetch") if "offset" in each]
    assert re.search(r"Fetch .*kc-\d offset \d", fetched[0])


def test_values_are_cut_after_clients() -> None:
    produced = next(one.row for one in decode_capture(KCAT) if one.row.api_name == "Produce")
    one = entry(NOON)._replace(row=produced._replace(client_id="client-of-a-long-name"))
    assert "client-...  kc-1  1 record" in lines(fitted(width=80))(one)
    for width in (40, 70, 80):
        assert " kc-1  1 record" in lines(fitted(width=width))(one)


# -- what follows the table


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_connections_and_what_is_left_out_follow_the_table(jobs: str) -> None:
    arguments = ("decode", "--jobs", jobs, KCAT, GROUP, "--filter", "api == Heartbeat")
    shown = SGR.sub("", on_a_terminal(*arguments, columns=80)).replace("\r\n", "\n")
    table, _, rest = shown.partition("\n\n")
    legend = [line.split() for line in rest.splitlines()]
    assert legend[0] == ["file", "connection", "client", "broker", "client", "id"]
    assert " ".join(legend[-2] + legend[-1]) == (
        "Not shown, for want of width: version, correlation id, length. -f tree shows whole "
        "messages."
    )
    rows = [
        one
        for path in (KCAT, GROUP)
        for one in decode_capture(path)
        if one.row.api_name == "Heartbeat" and one.row.direction == "request"
    ]
    ends = {(str(each.connection), each.client, each.broker, each.row.client_id) for each in rows}
    assert {tuple(line[1:]) for line in legend[1:-2]} == ends
    assert max(map(text_width, shown.splitlines())) <= 80
    assert table.count("Heartbeat") >= len(rows)


def test_only_the_first_connections_are_listed() -> None:
    connections: Connections = {}
    for number in range(MAX_CONNECTIONS + 5):
        add_connection(connections, entry(NOON)._replace(connection=number))
    text = list(legend(connections, fitted(width=140)))
    assert [line.split()[0] for line in text[2:-1]] == [str(n) for n in range(MAX_CONNECTIONS)]
    assert "--table connections" in text[-1]


def test_what_is_not_decoded_is_seen_at_80_columns() -> None:
    message = lines(fitted(width=80))(entry(NOON, error="why")).splitlines()[-1]
    assert "malformed me" in message
    assert "ok" not in lines(fitted(width=80))(entry(NOON))


def test_a_pipe_is_not_cut() -> None:
    shown = run(GROUP)
    assert len(shown.splitlines()) == 2 + len(list(decode_capture(GROUP)))  # no legend
    assert max(map(len, shown.splitlines())) > 150
    assert "..." not in shown


# -- colour


def test_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert not style(Times.UTC, Colour.AUTO, []).colour  # no terminal
    assert style(Times.UTC, Colour.ALWAYS, []).colour
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert style(Times.UTC, Colour.AUTO, []).colour
    assert not style(Times.UTC, Colour.NEVER, []).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style(Times.UTC, Colour.AUTO, []).colour
    assert "\x1b" not in run(KCAT)
    shown = run(GROUP, "--color", "always")
    assert "\x1b[31mREBALANCE_IN_PROGRESS\x1b[0m" in shown.replace("\x1b[31m ", "\x1b[31m")
    assert "\x1b[35m Heartbeat" in shown
    assert "\x1b[33m lenient" in shown
    assert SGR.sub("", shown) == run(GROUP)
