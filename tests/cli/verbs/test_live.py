"""The verbs for live clusters as their users run them, beside a real Kafka and our own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Final, NamedTuple

import pytest

from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.command_server import python
from tests.interop.implementations import until
from tests.real.broker import MECHANISMS, PASSWORD, USER, Broker

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]
NUMBERS = count()
NOBODY: Final = "127.0.0.1:1"
SETTINGS: Final = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}


class Place(NamedTuple):
    """A cluster: where to begin, without and with a password."""

    bootstrap: str
    sasl_bootstrap: str


@pytest.fixture(scope="module")
def ours() -> Iterator[Place]:
    secured = SETTINGS | {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    with ExitStack() as stack:
        plain = stack.enter_context(ServerThread(ServerConfig(settings=SETTINGS)))
        sasl = ServerConfig(settings=secured, passwords={USER: PASSWORD}, topics={"secret": 1})
        yield Place(plain.bootstrap, stack.enter_context(ServerThread(sasl)).bootstrap)


@pytest.fixture(params=["kafka", "ours"])
def place(request: pytest.FixtureRequest) -> Place:
    """A real Kafka, or ours."""
    found = request.getfixturevalue(request.param)
    return Place(found.bootstrap, found.sasl_bootstrap) if isinstance(found, Broker) else found


@pytest.fixture
def topic(place: Place) -> str:
    """A topic with two partitions."""
    name = f"live-{next(NUMBERS)}"
    created = ran("topics", "-b", place.bootstrap, "--create", f"{name}:2")
    assert created == (0, f"created topic {name}: 2 partitions\n", "")
    return name


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kafkawire_cli.main", *words]


def ran(*words: str, given: str = "") -> tuple[int, str, str]:
    """Run a command to its end: its exit code, and its output. `produce` and `consume`, which wait
    for input, records and signals, get a process of their own; others run in this one.
    """
    if words[0] in ("produce", "consume"):
        return ran_alone(*words, given=given)
    done = run(*words, stdin=given.encode())
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def ran_alone(*words: str, given: str = "") -> tuple[int, str, str]:
    """Run a command to its end in a process of its own."""
    done = subprocess.run(
        [python(), *command(*words)[1:]],
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
    )
    return done.returncode, done.stdout, done.stderr


def table(message: str) -> list[list[str]]:
    return [line.split() for line in message.splitlines()]


def test_a_topic_from_its_making_to_its_end(place: Place) -> None:
    name, here = f"live-{next(NUMBERS)}", ("-b", place.bootstrap)
    made = (
        "--create",
        f"{name}:2",
        "--topic-config",
        "retention.ms=60000",
        "--replication-factor",
        "1",
    )
    code, out, error = ran_alone("topics", *here, *made)
    assert (code, error) == (0, "")
    assert out == f"created topic {name}: 2 partitions, retention.ms=60000\n"
    until(lambda: [name, "2", "1"] in table(ran_alone("topics", *here)[1]))
    code, message, _ = ran_alone("topics", *here, "--topic", name)
    assert code == 0
    assert message.startswith(f"{name}: 2 partitions\n")
    assert ["1", "1", "0", "1", "1", "0", "0"] in table(message)
    [result] = json.loads(ran_alone("topics", *here, "--topic", name, "-f", "json")[1])["topics"]
    assert [each["end_offset"] for each in result["partitions"]] == [0, 0]
    code, _, error = ran_alone("topics", *here, "--create", name)
    assert (code, error.startswith("kafkawire topics: TOPIC_ALREADY_EXISTS")) == (1, True)
    deleted = ran_alone("topics", *here, "--delete", name, "--yes")
    assert deleted == (0, f"deleted topic {name}: 2 partitions\n", "")

    def unknown() -> bool:
        code, _, error = ran_alone("topics", *here, "--topic", name)
        return (code, "UNKNOWN_TOPIC_OR_PARTITION" in error) == (1, True)

    until(unknown)  # the controller has deleted it, the broker hears of it


def test_lines_are_records_and_records_are_lines(place: Place, topic: str) -> None:
    here = ("-b", place.bootstrap)
    lines = 'alice:apples\nplain\x1b[2J\nbob:NULL\n\nünï:{"a": 1}'
    sent = ("produce", topic, *here, "-p", "1", "-K", ":", "--null", "NULL", "-v")
    code, result, message = ran_alone(*sent, "-X", "compression.type=zstd", given=lines)
    assert (code, message) == (0, "5 delivered, 0 failed\n")
    assert result.splitlines() == [f"{topic}-1 {offset}" for offset in range(5)]
    read = ("consume", topic, *here, "--exit-at-end")
    code, result, message = ran_alone(*read, "-f", "json")
    assert (code, message) == (0, "")
    records = [json.loads(line) for line in result.splitlines()]
    assert [(each["partition"], each["offset"]) for each in records] == [(1, n) for n in range(5)]
    assert [(each["key"], each["value"]) for each in records] == [
        ({"text": "alice"}, {"text": "apples"}),
        (None, {"hex": b"plain\x1b[2J".hex()}),
        ({"text": "bob"}, None),
        (None, {"text": ""}),
        ({"text": "ünï"}, {"json": {"a": 1}}),
    ]
    shown = [line.split("  ") for line in ran_alone(*read)[1].splitlines()]
    assert [line[-2:] for line in shown[:3]] == [
        ["alice", "apples"],
        ["-", "plain\\x1b[2J"],
        ["bob", "null"],
    ]
    assert ran_alone(*read, "-f", "value", "-n", "1")[1] == "apples\n"
    assert ran_alone(*read, "--offset", "latest")[1] == ""
    later = str(records[-1]["timestamp"] + 1)
    assert ran_alone(*read, "--offset", f"@{later}")[1] == ""
    assert len(ran_alone(*read, "--offset", "2020-01-31T12:00:00Z")[1].splitlines()) == 5


def test_a_group_goes_on_where_it_was(place: Place, topic: str) -> None:
    here, group = ("-b", place.bootstrap), f"g-{topic}"
    assert (
        ran("produce", topic, *here, "-p", "0", given="".join(f"{n}\n" for n in range(9)))[0] == 0
    )
    read = ("consume", topic, *here, "--group", group, "-f", "value")
    assert ran(*read, "-n", "4") == (0, "0\n1\n2\n3\n", "")
    [result] = json.loads(ran("groups", *here, "--group", group, "-f", "json")[1])["groups"]
    assert (result["state"], result["members"], result["lag"]) == ("Empty", [], 5)
    assert ran(*read, "-e") == (0, "4\n5\n6\n7\n8\n", "")
    code, shown, error = ran("groups", *here)
    assert (code, error) == (0, "")
    assert [group, "Empty", "classic", "0"] in table(shown)
    assert ran("groups", *here, "--delete", group, "--yes") == (0, f"deleted group {group}\n", "")
    code, _, error = ran("groups", *here, "--group", group)
    assert code == 1
    assert error.startswith(f"kafkawire groups: no such group: '{group}'")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_in_order(place: Place, topic: str, number: signal.Signals) -> None:
    here, group = ("-b", place.bootstrap), f"g-{topic}"
    ran("produce", topic, *here, "-p", "1", given="a\nb\n")
    reads = command("consume", topic, *here, "--group", group, "-f", "value")
    with subprocess.Popen(reads, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert [running.stdout.readline() for _ in range(2)] == [b"a\n", b"b\n"]
        members = ran("groups", *here, "--group", group)[1]
        assert f"{topic} 0-1" in members
        running.send_signal(number)
        assert running.wait(240) == 0
        assert (running.stdout.read(), running.stderr.read()) == (b"", b"")
    [result] = json.loads(ran("groups", *here, "--group", group, "-f", "json")[1])["groups"]
    assert (result["state"], result["lag"]) == ("Empty", 0)  # it committed, and left


@pytest.mark.parametrize(("lines", "unbuffered"), [(1, "1"), (600, "")])
def test_a_closed_pipe_ends_consume_and_unwritten_records_are_not_committed(
    place: Place, topic: str, lines: int, unbuffered: str
) -> None:
    """As `kafkawire consume | head`: what one poll brings is committed once all of it is out."""
    here, group = ("-b", place.bootstrap), f"g-{topic}"
    width, many, poll, pipe = 2000, 4000, 500, 1 << 16
    ran("produce", topic, *here, "-p", "0", given=f"{'x' * width}\n" * many)
    reads = command("consume", topic, *here, "--group", group, "-f", "value")
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        reads, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(lines * (width + 1))
        running.stdout.close()
        assert running.wait(240) == 0
        assert running.stderr.read() == b""
    [result] = json.loads(ran("groups", *here, "--group", group, "-f", "json")[1])["groups"]
    assert result["state"] == "Empty"
    committed = many - result["lag"]
    if lines < poll:
        assert committed == 0
    else:
        # our end of the pipe reads ahead, by as much as the pipe itself at the most
        assert poll <= committed <= lines + 2 * pipe // width
    rest = ran("consume", topic, *here, "--group", group, "-f", "value", "-e")[1]
    assert len(rest.splitlines()) == many - committed


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let commands be interrupted: those that are begun in the background ignore it, and so does
    what they begin.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_the_input_is_quiet(place: Place, topic: str) -> None:
    sends = command("produce", topic, "-b", place.bootstrap, "-v")
    pipe = subprocess.PIPE
    with subprocess.Popen(sends, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(b"one\n")
        until_there(place, topic, 1)
        running.send_signal(signal.SIGINT)
        assert running.wait(240) == 130
        assert running.stderr.read() == b"1 delivered, 0 failed\n"


def until_there(place: Place, topic: str, number: int) -> None:
    """Wait until a topic has so many records."""
    assert ran("consume", topic, "-b", place.bootstrap, "-n", str(number))[0] == 0


def test_a_password_that_is_wrong(place: Place) -> None:
    mechanism = MECHANISMS[-1]
    here = ("-b", place.sasl_bootstrap, *sasl(mechanism, PASSWORD))
    assert ran("topics", *here)[0] == 0
    for verb in (("topics",), ("groups",), ("consume", "secret"), ("produce", "secret")):
        wrong = ("-b", place.sasl_bootstrap, *sasl(mechanism, "mistaken"))
        code, out, error = ran(*verb, *wrong, given="one\ntwo\n")
        assert (code, out) == (1, "")
        assert "authentication failed" in error
        assert "mistaken" not in error
        assert len(error.splitlines()) == 1


def sasl(mechanism: str, password: str) -> list[str]:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
    }
    return [word for key, value in given.items() for word in ("-X", f"{key}={value}")]


def test_a_topic_that_is_not_there(place: Place) -> None:
    here = ("-b", place.bootstrap, "-X", "max.block.ms=8000")
    code, _, error = ran("produce", "nothere", *here, given="one\ntwo\nthree\n")
    assert code == 1
    assert error.startswith("line 1: UNKNOWN_TOPIC_OR_PARTITION")
    assert error.endswith("0 delivered, 1 failed\n"), "what comes next would fail as well"
    code, _, error = ran("consume", "nothere", "-b", place.bootstrap)
    assert (code, error) == (1, "kafkawire consume: UNKNOWN_TOPIC_OR_PARTITION: topic nothere\n")


def test_undelivered_lines_are_reported_line_by_line(place: Place, topic: str) -> None:
    here = ("-b", place.bootstrap, "-X", "max.request.size=200")
    code, _, error = ran("produce", topic, *here, given=f"short\n{'x' * 500}\nshort\n")
    assert code == 1
    assert error.startswith("line 2: MESSAGE_TOO_LARGE")
    assert error.endswith("2 delivered, 1 failed\n")


RESETS: Final = {
    ("--to-earliest",): [0, 0],
    ("--to-latest",): [5, 0],
    ("--to-offset", "3"): [3, 0],
    ("--shift-by", "-1"): [1, 0],
    ("--shift-by", "-9"): [0, 0],
    ("--by-duration", "PT1H"): [0, 0],
    ("--to-datetime", "2090-01-01"): [5, 0],
    ("--to-current",): [2, 0],
}


def test_offsets_of_a_group_are_reset_and_deleted(place: Place, topic: str) -> None:
    here, group = ("-b", place.bootstrap), f"group-{topic}"
    assert ran("produce", topic, *here, "-p", "0", given="a\nb\nc\nd\ne\n")[0] == 0
    mine = ("groups", *here, "--group", group)

    def committed() -> dict[int, int]:
        [found] = json.loads(ran(*mine, "-f", "json")[1])["groups"]
        return {each["partition"]: each["offset"] for each in found["offsets"]}

    start = ("--reset-offsets", "--execute", "--topic", topic, "--to-offset", "2", "-f", "json")
    for is_new in (True, False):
        code, out, error = ran(*mine, *start)
        assert (code, error, json.loads(out)["is_new"]) == (0, "", is_new)
    assert committed() == {0: 2, 1: 0}
    for words, expected in RESETS.items():
        code, out, error = ran(*mine, "--reset-offsets", "--all-topics", *words, "-f", "json")
        assert (code, error) == (0, ""), words
        plan = json.loads(out)
        assert [each["new_offset"] for each in plan["offsets"]] == expected, words
        assert [each["committed"] for each in plan["offsets"]] == [2, 0]
    assert committed() == {0: 2, 1: 0}, "nothing is changed without --execute"
    assert ran("consume", topic, *here, "-g", group, "-e", "-f", "value")[1] == "c\nd\ne\n"
    one = ("--reset-offsets", "--topic", f"{topic}:0", "--to-earliest", "--execute")
    assert table(ran(*mine, *one)[1])[-1] == [topic, "0", "5", "0"]
    assert committed() == {0: 0, 1: 0}
    deleting = (*mine, "--delete-offsets", "--topic", f"{topic}:1")
    said = f" the offset of group {group} in {topic}-1\n"
    assert ran(*deleting, "--dry-run") == (0, f"would delete{said}", "")
    assert committed() == {0: 0, 1: 0}
    assert ran(*deleting, "--yes") == (0, f"deleted{said}", "")
    assert committed() == {0: 0}
    assert ran("groups", *here, "--delete", group, "--yes") == (0, f"deleted group {group}\n", "")


def test_offsets_of_a_group_with_members_are_not_reset(place: Place, topic: str) -> None:
    here, group = ("-b", place.bootstrap), f"group-{topic}"
    member = command("consume", topic, *here, "--group", group)
    with subprocess.Popen(member, stdout=subprocess.DEVNULL) as consumer:
        mine = ("groups", *here, "--group", group)
        until(lambda: "Stable" in ran(*mine)[1])
        reset = ("--reset-offsets", "--to-latest", "--topic", topic, "--execute")
        code, out, error = ran(*mine, *reset)
        consumer.send_signal(signal.SIGINT)
    assert (code, out) == (1, "")
    assert error.endswith("has members (it is Stable): stop them first\n")


def test_the_cluster(place: Place) -> None:
    code, out, error = ran("cluster", "-b", place.bootstrap, "--apis")
    assert (code, error) == (0, "")
    assert ["1", "Fetch", "4-18", "all"] in table(out)
    found = json.loads(ran("cluster", "-b", place.bootstrap, "-f", "json")[1])
    [broker] = found["brokers"]
    assert place.bootstrap == f"{broker['host']}:{broker['port']}"
    assert {each["name"] for each in broker["features"]} > {"metadata.version", "group.version"}
    assert (found["healthy"], found["offline"], found["under_replicated"]) == (True, [], [])


def test_quorum_and_log_directories_of_a_real_kafka(kafka: Broker) -> None:
    found = json.loads(ran("cluster", kafka.bootstrap, "-f", "json")[1])
    assert found["unavailable"] == {}
    assert found["controller_id"] == found["quorum"]["leader_id"] == 1
    [voter] = found["quorum"]["voters"]
    assert voter["lag"] == 0
    assert voter["log_end_offset"] >= found["quorum"]["high_watermark"] > 0
    [broker] = found["brokers"]
    assert broker["is_fenced"] is False
    [directory] = broker["log_dirs"]
    assert directory["path"] == str(kafka.data)
    assert directory["error"] == 0
    assert directory["total"] >= directory["usable"] > 0


@pytest.mark.parametrize("words", [("topics",), ("groups",), ("consume", "t"), ("produce", "t")])
def test_nobody_answers(words: tuple[str, ...]) -> None:
    limit = "bootstrap.timeout.ms" if words[0] == "produce" else "default.api.timeout.ms"
    code, out, error = ran(*words, "-b", NOBODY, "-X", f"{limit}=300", given="one\n")
    assert (code, out) == (1, "")
    assert ("no broker reachable" if words[0] == "produce" else "timed out") in error


RESET: Final = ("groups", "-b", NOBODY, "--group", "g", "--reset-offsets")
USAGE: Final[dict[tuple[str, ...], str]] = {
    ("topics",): "expected captures, or a cluster with --bootstrap-server",
    ("groups",): "expected captures, or a cluster with --bootstrap-server",
    ("topics", "x.pcap", "-b", NOBODY): "not allowed together with captures",
    ("groups", "x.pcap", "-b", NOBODY): "not allowed together with captures",
    ("topics", "x.pcap", "--create", "t"): "only allowed with a cluster",
    ("groups", "x.pcap", "--delete", "g"): "only allowed with a cluster",
    ("topics", "x.pcap", "--topic", "t"): "of captures, --filter 'topic == NAME'",
    ("groups", "x.pcap", "--reset-offsets"): "only allowed with a cluster",
    ("groups", "-b", NOBODY, "--to-latest"): "--to-latest: only allowed with --reset-offsets",
    ("groups", "-b", NOBODY, "--reset-offsets"): "--group: expected one group to change",
    (*RESET, "--to-latest"): "Missing --topic or --all-topics: required by --reset-offsets",
    (*RESET, "--topic", "t", "--all-topics"): "--topic: not allowed with --all-topics",
    (*RESET, "--topic", "t"): "expected one of --to-earliest, --to-latest",
    (*RESET, "--topic", "t", "--to-latest", "--to-earliest"): "expected one of --to-earliest",
    (*RESET, "--topic", "t:x", "--to-latest", "--delete-offsets"): "not allowed with --reset",
    (*RESET, "--topic", "t", "--by-duration", "1h"): "invalid duration '1h': expected ISO 8601",
    (*RESET, "--topic", "t", "--by-duration", "PT"): "invalid duration 'PT'",
    (*RESET, "--topic", "t", "--to-datetime", "x"): "--to-datetime: invalid",
    ("topics", "-b", NOBODY, "--at", "@5"): "--at: only allowed with --topic",
    ("topics", "-b", NOBODY, "--topic", "t", "--at", "5"): "invalid time '5'",
    ("topics", "-b", NOBODY, "--sort", "bytes"): "only allowed with captures",
    ("groups", "-b", NOBODY, "--port", "9092"): "only allowed with captures",
    ("topics", "-b", NOBODY, "--create", "t", "--delete", "t"): "not allowed together",
    ("topics", "-b", NOBODY, "--create", "t:x"): "invalid number of partitions 'x'",
    ("topics", "-b", NOBODY, "--topic-config", "a=b"): "only allowed with --create or --alter",
    ("topics", "-b", NOBODY, "--replication-factor", "1"): "only allowed with --create",
    ("topics", "-b", NOBODY, "--delete-config", "a"): "only allowed with --alter",
    ("topics", "-b", NOBODY, "--alter", "t"): "nothing to alter in 't': expected NAME:PARTITIONS",
    ("topics", "-b", NOBODY, "--alter", "t:0"): "--alter: invalid number of partitions '0'",
    ("topics", "-b", NOBODY, "--alter", "t", "--topic-config", "a=b", "--delete-config", "a"): (
        "--delete-config: a is also set"
    ),
    ("topics", "-b", NOBODY, "--delete", "t"): "--delete: no terminal to confirm it: add --yes",
    ("groups", "-b", NOBODY, "--delete", "g"): "--delete: no terminal to confirm it: add --yes",
    ("topics", "-b", NOBODY, "--yes"): "--yes: only allowed with an option that deletes",
    ("topics", "-b", NOBODY, "--dry-run"): "--dry-run: there is nothing to change",
    ("topics", "-b", NOBODY, "--delete", "t", "--yes", "--dry-run"): "not allowed together",
    ("produce", "t", "-b", NOBODY, "-K", ":", "--key", "k"): "not allowed together",
    ("topics", "-b", "http://a:9092"): "invalid address 'http://a:9092': a URL, expected host:port",
    ("topics", "-b", "a:"): "invalid address 'a:': no port, expected host:port",
    ("topics", "--config", "a=b"): "--config: a=b: No such file or directory",
    ("topics", "t.pcap", "--profile", "p"): "--profile: not allowed together with captures",
    ("consume", "t", "-b", NOBODY, "--offset", "yesterday"): "invalid offset 'yesterday'",
    ("consume", "t", "-b", NOBODY, "-X", "linger"): "'linger': expected KEY=VALUE",
    ("consume", "t", "-b", NOBODY, "-X", "fetch.min.byte=1"): "fetch.min.byte",
    ("topics", "-b", NOBODY, "-X", "request.timeout=1"): "request.timeout: unknown key",
    ("groups", "-b", NOBODY, "-X", "request.timeout=1"): "request.timeout: unknown key",
    ("produce", "t", "-b", NOBODY, "-X", "acks=7"): "acks",
    ("produce", "t", "-b", NOBODY, "-K", ""): "must not be empty",
}


@pytest.mark.parametrize("words", USAGE, ids=" ".join)
def test_usage_errors(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert USAGE[words] in " ".join(done.stderr.split())
