"""Offsets, ends and templates of `consume`, headers of `produce`, `topics --at`, `cluster`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.faults import Action, Fault
from kafkawire.client.consumer import ConsumerRecord
from kafkawire.client.share_consumer import ShareRecord
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.records import TimestampType
from kafkawire_cli.render.consumed_records import writer
from tests.cli.reports import run

COUNT = 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    """Two brokers; partition 0 of `t` has records 0 to 19, a millisecond or more apart."""
    with ServerThread(ServerConfig(brokers=2, topics={"t": 2, "u": 1})) as started:
        lines = tmp_path_factory.mktemp("lines") / "lines"
        lines.write_text("".join(f"k{number}:v{number}\n" for number in range(COUNT)))
        sent = ("produce", "t", "-p", "0", "-K", ":", "-H", "a=1", "-H", "a=2", "-H", "b=")
        done = run(*sent, "-i", str(lines), "-b", started.bootstrap)
        assert (done.exit_code, done.stdout) == (0, ""), done.stderr
        yield started


def values(server: ServerThread, *words: str) -> list[str]:
    """Consume the topic `t`, values only."""
    done = run("consume", "t", "-b", server.bootstrap, "-f", "value", *words)
    assert done.exit_code == 0, done.stderr
    return done.stdout.split()


def numbered(first: int, end: int = COUNT) -> list[str]:
    return [f"v{number}" for number in range(first, end)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--offset", "17", "-e"), numbered(17)),
        (("--offset", "-3", "-e"), numbered(17)),
        (("--offset", "-300", "-e"), numbered(0)),
        (("--offset", "300", "-e"), []),
        (("--offset", "latest", "-e"), []),
        (("--offset", "@0", "-e"), numbered(0)),
        (("--offset", "2000-01-01", "--until", "latest"), numbered(0)),
        (("--offset", "5", "--until", "8"), numbered(5, 8)),
        (("--offset", "5", "--until", "-12"), numbered(5, 8)),
        (("--offset", "5", "--until", "2000-01-01"), []),
        (("--until", "2090-01-01T00:00:00Z", "-n", "2"), numbered(0, 2)),
        (("-p", "0", "-e"), numbered(0)),
        (("-p", "1", "-e"), []),
        (("-p", "1", "-p", "0", "--until", "3"), numbered(0, 3)),
    ],
    ids=lambda each: " ".join(each[:4]),
)
def test_where_it_begins_and_ends(
    server: ServerThread, words: tuple[str, ...], expected: list[str]
) -> None:
    assert values(server, *words) == expected


@pytest.mark.parametrize("option", ["300", "20", "5", "-300", "latest"])
def test_an_offset_after_the_end_is_named(server: ServerThread, option: str) -> None:
    done = run("consume", "t", "-b", server.bootstrap, "-p", "0", "--offset", option, "-e")
    note = "kafkawire consume: t-0: offset 300 is after the end, reading from 20\n"
    assert (done.exit_code, done.stderr) == (0, note if option == "300" else "")


def test_a_time_is_that_of_the_records(server: ServerThread) -> None:
    done = run("consume", "t", "-b", server.bootstrap, "-e", "-f", "%T\\n")
    times = [int(line) for line in done.stdout.split()]
    later = times[-1] + 1
    assert values(server, "--offset", f"@{later}", "-e") == []
    assert values(server, "--offset", f"@{times[-1]}", "-e")[-1:] == numbered(COUNT - 1)
    at = ("topics", "-b", server.bootstrap, "--topic", "t", "-f", "json", "--at")
    for text, offset in ((f"@{later}", COUNT), ("@0", 0)):
        [topic] = json.loads(run(*at, text).stdout)["topics"]
        assert [each["offset_at"] for each in topic["partitions"]] == [offset, 0]
    result = run(*at[:3], "--topic", "u", "--at", "2000-01-01")
    assert result.exit_code == 0, result.output
    table = result.stdout
    assert table.splitlines()[1].split()[-3:] == ["first", "end", "at"]


def test_a_template(server: ServerThread) -> None:
    words = ("consume", "t", "-b", server.bootstrap, "--offset", "-1", "-e", "-f")
    shown = run(*words, "%t-%p %o %k(%K)=%s(%S) %h %%\\t\\x41\\\\\\n").stdout
    assert shown == "t-0 19 k19(3)=v19(3) a=1,a=2,b= %\tA\\\n"


def test_null_in_a_template_is_nothing_and_less_than_empty() -> None:
    record = ConsumerRecord(
        "t", 0, 0, 0, None, b"", (), timestamp_type=TimestampType.CREATE_TIME, leader_epoch=0
    )
    assert writer("%k|%K|%s|%S", ["t"])(record) == b"|-1||0"


def test_the_delivery_count_of_a_share_group_is_in_json() -> None:
    record = ShareRecord("t", 0, 7, 0, None, b"v", (), TimestampType.CREATE_TIME, 0, 3)
    shown = json.loads(writer("json", ["t"])(record))
    assert (shown["offset"], shown["deliveryCount"]) == (7, 3)
    assert "deliveryCount" not in json.loads(writer("json", ["t"])(record.consumer_record))
    assert writer("%o %s", ["t"])(record) == b"7 v"


def test_a_broker_without_share_groups() -> None:
    with ServerThread(ServerConfig(topics={"t": 1}, release="3.9")) as server:
        done = run("consume", "t", "--share", "s", "-b", server.bootstrap)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "share.version" in done.stderr
        unknown = run("consume", "u", "--share", "s", "-b", server.bootstrap)
        assert unknown.exit_code == 1
        assert "'u'" in unknown.stderr or " u" in unknown.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-f", "%q"), "'%q' at 0: expected one of %s"),
        (("-f", "%s\\q"), "'\\\\q' at 2"),
        (("-f", "%"), "'%' at 0"),
        (("-f", "jsonl"), "'jsonl': expected table, json, value"),
        (("--offset", "-x"), "invalid offset '-x': expected earliest"),
        (("--offset", "1960-01-01"), "1960-01-01 is before 1970"),
        (("--offset", "99999999999999999999"), "invalid offset"),
        (("--offset", "5", "-g", "g"), "--offset: not allowed together with --group"),
        (("--until", "5", "-g", "g"), "--until: not allowed together with --group"),
        (("-p", "5", "-g", "g"), "--partition: not allowed together with --group"),
        (("--until", "5", "-e"), "--until, --exit-at-end: not allowed together"),
        (("--share", "s", "-g", "g"), "--group: not allowed together with --share"),
        (("--share", "s", "--offset", "5"), "--offset: not allowed together with --share"),
        (("--share", "s", "--offset", "earliest"), "--offset: not allowed together with --share"),
        (("--share", "s", "--offset", "latest"), "--group, share.auto.offset.reset)"),
        (("--share", "s", "--until", "5"), "--until: not allowed together with --share"),
        (("--share", "s", "-p", "0"), "--partition: not allowed together with --share"),
        (("--share", "s", "-e"), "--exit-at-end: not allowed together with --share"),
        (
            ("--share", "s", "--isolation", "read_committed"),
            "--isolation: not allowed together with --share",
        ),
        (("--share", "s", "-f", "jsonl"), "'jsonl': expected table, json, value"),
        (("--share", "s", "-X", "max.poll.records=0"), "max.poll.records: 0 is not between"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_usage_errors(words: tuple[str, ...], reason: str) -> None:
    done = run("consume", "t", "-b", "127.0.0.1:1", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in " ".join(done.stderr.split())


def test_a_partition_that_does_not_exist(server: ServerThread) -> None:
    done = run("consume", "t", "-b", server.bootstrap, "-p", "2", "-e")
    assert done.exit_code == 1
    assert done.stderr == "kafkawire consume: UNKNOWN_TOPIC_OR_PARTITION: t-2: t has 2 partitions\n"


@pytest.mark.parametrize("header", ["a", "=b", ""])
def test_a_header_without_a_name(header: str) -> None:
    done = run("produce", "t", "-b", "127.0.0.1:1", "-H", header)
    assert done.exit_code == 2
    assert "expected NAME=VALUE" in done.stderr


def test_the_cluster(server: ServerThread) -> None:
    shown = run("cluster", "-b", server.bootstrap, "--apis").stdout
    lines = [line.split() for line in shown.splitlines()]
    first, _ = server.bootstrap.split(",")
    assert (
        "  2 topics, 3 partitions: 0 offline, 0 below min.insync.replicas, 0 under-replicated\n"
        in shown
    )
    assert any(line[:2] == ["1", first] for line in lines)
    assert ["1", "Fetch", "4-18", "all"] in lines
    assert any(line[0] == "metadata.version" for line in lines if line)
    found = json.loads(run("cluster", "-b", server.bootstrap, "-f", "json").stdout)
    assert [each["broker_id"] for each in found["brokers"]] == [1, 2]
    assert sum(each["leaders"] for each in found["brokers"]) == 3
    assert found["under_replicated"] == []
    assert {"api_key": 1, "name": "Fetch", "lowest": 4, "highest": 18} in found["brokers"][1][
        "apis"
    ]


def test_a_rule_of_serve_makes_requests_fail(server: ServerThread) -> None:
    rule = Fault.parse("Metadata nth=2 action=disconnect")
    server.server.faults.append(rule)
    try:
        for _ in range(2):
            assert run("topics", "-b", server.bootstrap).exit_code == 0, "it is sent again"
    finally:
        server.clear_faults()
    assert (rule.hit, rule.seen > 2) == (1, True)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("Fetch", Fault("Fetch")),
        ("*", Fault()),
        ("nth=2", Fault(nth=2)),
        ("* probability=0.5 action=delay delay=0.25", Fault(None, None, 0.5, "delay", delay=0.25)),
        (
            "listOffsets error=NOT_CONTROLLER",
            Fault("ListOffsets", error=ErrorCode.NOT_CONTROLLER),
        ),
        ("Fetch action=truncate keep=7", Fault("Fetch", action=Action.TRUNCATE, keep=7)),
        ("Fetch action=corrupt at=3", Fault("Fetch", action=Action.CORRUPT, at=3)),
        (
            "Produce action=disconnect carried_out=true",
            Fault("Produce", action=Action.DISCONNECT, carried_out=True),
        ),
    ],
)
def test_rules(rule: str, expected: Fault) -> None:
    assert Fault.parse(rule) == expected


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("Produce action=disconect", "unknown action 'disconect'; expected one of "),
        ("Produce action=disconect", "; did you mean 'disconnect'?"),
        ("Produc", "unknown API 'Produc'; did you mean 'Produce'?"),
        ("Fetch nth", "'nth': invalid value; expected a number from 1"),
        ("Fetch nth=0", "nth=0: expected a number from 1"),
        ("Fetch nth=1 nth=2", "'nth=2': given twice"),
        ("Fetch nth=99999999999999999999", "invalid value"),
        ("Fetch probability=1.5", "from 0 to 1"),
        ("Fetch action=delay delay=inf", "expected seconds"),
        ("Fetch action=delay delay=nan", "expected seconds"),
        ("Fetch error=NOT_LEADER", "did you mean 'NOT_LEADER_OR_FOLLOWER'?"),
        ("Fetch action=kill", "expected one of error, delay, drop"),
        ("Fetch often=1", "unknown; expected one of action, nth"),
        ("Fetch carried_out=1", "expected true or false"),
    ],
)
def test_what_is_no_rule_is_a_usage_error(rule: str, reason: str) -> None:
    done = run("serve", "--fault", rule)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


def test_a_rule_for_an_api_that_the_release_lacks_is_a_usage_error() -> None:
    done = run("serve", "--release", "3.9", "--fault", "ShareFetch error=INVALID_REQUEST")
    assert done.exit_code == 2
    assert "brokers of release 3.9 do not serve it" in " ".join(done.stderr.split())
