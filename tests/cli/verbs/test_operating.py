"""What an operator of a cluster meets in the verbs: closed output, wrong names, configurations."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any, cast

import pytest

from kafkawire.client.consumer import ConsumerRecord
from kafkawire.client.failures import BrokerError
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire.protocol import ErrorCode
from kafkawire.records import TimestampType
from kafkawire_cli.live.topic_configs import read_configs
from kafkawire_cli.render.consumed_records import writer
from tests.cli.reports import COMMAND, run

pytestmark = pytest.mark.timeout(120)
NUMBERS = count()


@pytest.fixture(scope="module")
def here() -> Iterator[tuple[str, str]]:
    """The option that names a cluster, which creates topics on its own."""
    with ServerThread(ServerConfig(settings={"group.initial.rebalance.delay.ms": "0"})) as server:
        yield ("-b", server.bootstrap)


@pytest.fixture
def topic(here: tuple[str, str], tmp_path: Path) -> str:
    """A topic with three partitions; partition 2 has three records."""
    name = f"operated-{next(NUMBERS)}"
    assert run("topics", *here, "--create", f"{name}:3").exit_code == 0
    lines = tmp_path / "lines"
    lines.write_text("a\nb\nc\n")
    assert run("produce", name, *here, "-p", "2", "-i", lines).exit_code == 0
    return name


def shown(*words: object) -> Any:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


# -- the output is closed


@pytest.mark.parametrize("group", [(), ("--group", "closing")], ids=["alone", "in a group"])
def test_consume_ends_when_its_output_is_closed_while_no_records_come(
    here: tuple[str, str], topic: str, group: tuple[str, ...]
) -> None:
    """As `kafkawire consume | head -1` for a topic where nothing more is produced."""
    reads = [*COMMAND, "consume", topic, *here, *group, "-f", "value"]
    pipe = subprocess.PIPE
    with subprocess.Popen(reads, stdout=pipe, stderr=pipe) as running:
        try:
            assert running.stdout is not None
            assert running.stderr is not None
            assert [running.stdout.readline() for _ in range(3)] == [b"a\n", b"b\n", b"c\n"]
            running.stdout.close()
            assert running.wait(60) == 0
            assert running.stderr.read() == b""
        finally:
            running.kill()
    if group:  # in order: it committed, and left
        [result] = shown("groups", *here, *group)["groups"]
        assert (result["state"], result["lag"]) == ("Empty", 0)


# -- names that the cluster does not have


@pytest.mark.parametrize(
    "words",
    [
        ("produce", "{}", "-p", "77"),
        ("consume", "{}", "-p", "77"),
        ("groups", "--group", "g", "--reset-offsets", "--to-latest", "--topic", "{}:1,77"),
    ],
    ids=lambda words: words[0],
)
def test_a_partition_that_does_not_exist_is_reported_before_anything_is_sent(
    here: tuple[str, str], topic: str, words: tuple[str, ...]
) -> None:
    verb, *rest = (word.format(topic) for word in words)
    done = run(verb, *here, *rest, stdin=b"a\n")
    assert (done.exit_code, done.stdout) == (1, "")
    reason = f"UNKNOWN_TOPIC_OR_PARTITION: {topic}-77: {topic} has 3 partitions"
    assert done.stderr == f"kafkawire {verb}: {reason}\n"


# -- the configuration of topics


def test_a_topic_is_shown_with_what_is_set_for_it(here: tuple[str, str], topic: str) -> None:
    def configs(*words: str) -> dict[str, Any]:
        [described] = shown("topics", *here, "--topic", topic, *words)["topics"]
        return {name: each["value"] for name, each in described["configs"].items()}

    assert configs() == {}
    setting = ("--topic-config", "retention.ms=60000", "--topic-config", "segment.bytes=2097152")
    assert run("topics", *here, "--alter", topic, *setting).exit_code == 0
    assert configs() == {"retention.ms": "60000", "segment.bytes": "2097152"}
    text = run("topics", *here, "--topic", topic).stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["retention.ms", "60000", "topic"] in rows
    assert "cleanup.policy" not in text
    every = configs("--all-configs")
    assert every.items() > {"retention.ms": "60000", "cleanup.policy": "delete"}.items()
    assert run("topics", *here, "--all-configs").exit_code == 2


class Forbidding:
    """An admin client whose user may describe a topic, not its configuration."""

    async def describe_topic_configs(self, names: list[str]) -> None:
        raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, names[0])


def test_a_configuration_that_is_forbidden_is_not_shown_as_empty() -> None:
    found = asyncio.run(read_configs(cast(Any, Forbidding()), ["t"], every=False))["t"]
    assert found.lines() == ("configuration: TOPIC_AUTHORIZATION_FAILED: t",)
    assert found.json()["configs"] is None


# -- deletions without a terminal


def words_of(text: str) -> str:
    """Join the lines of a message or help, without the frame."""
    return " ".join(text.replace("\u2502", " ").split())


@pytest.mark.parametrize("verb", ["topics", "groups"])
def test_the_help_has_the_exit_code_of_a_deletion_that_nobody_can_confirm(
    here: tuple[str, str], verb: str
) -> None:
    code = run(verb, *here, "--delete", "x").exit_code
    exit_codes = words_of(run(verb, "--help").stdout).partition("Exit code")[2]
    said = dict(part.strip().split(": ", 1) for part in exit_codes.split(";")[:2])
    assert "deletion without --yes" in said[str(code)]


# -- a cluster where captures are expected


@pytest.mark.parametrize("verb", ["topics", "groups"])
def test_a_verb_of_captures_and_clusters_has_no_default_cluster(verb: str) -> None:
    assert run(verb).exit_code == 2
    assert "localhost:9092]" not in words_of(run(verb, "--help").stdout)


@pytest.mark.parametrize("address", ["localhost:19492", "10.0.0.1:9092", "[::1]:9092"])
@pytest.mark.parametrize(
    ("verb", "hint"),
    [
        ("topics", "-b {}"),
        ("groups", "-b {}"),
        ("top", "kafkawire cluster {}"),
        ("summary", "kafkawire cluster {}"),
    ],
)
def test_an_address_instead_of_a_capture(verb: str, hint: str, address: str) -> None:
    done = run(verb, address)
    assert (done.exit_code, done.stdout) == (2, "")
    assert hint.format(address) in words_of(done.stderr)


def test_a_capture_whose_name_is_an_address_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a:1"
    path.write_bytes(b"")
    assert "cluster" not in words_of(run("summary", path).stderr)


# -- offsets of groups


@pytest.mark.parametrize(
    ("target", "wanted", "new", "note"),
    [
        (("--to-offset", "999"), 999, 3, "999 is after the end"),
        (("--to-offset", "2"), 2, 2, ""),
        (("--shift-by", "-9"), -8, 0, "-8 is before the first offset"),
        (("--to-datetime", "@99999999999999"), 3, 3, ""),
        (("--to-datetime", "1971-01-01"), 0, 0, ""),
    ],
)
def test_an_offset_outside_of_the_partition_is_named(
    here: tuple[str, str], topic: str, target: tuple[str, str], wanted: int, new: int, note: str
) -> None:
    change = ("groups", *here, "--group", f"g-{topic}", "--topic", f"{topic}:2", "--reset-offsets")
    assert run(*change, "--to-offset", "1", "--execute").exit_code == 0
    [found] = shown(*change, *target)["offsets"]
    assert (found["committed"], found["wanted_offset"], found["new_offset"]) == (1, wanted, new)
    last = run(*change, *target).stdout.splitlines()[-1]
    assert last.split(maxsplit=4)[4:] == ([note] if note else [])


@pytest.mark.parametrize(
    "words",
    [
        ("groups", "--group", "g", "--reset-offsets", "--topic", "t", "--to-datetime", "yesterday"),
        ("topics", "--topic", "t", "--at", "yesterday"),
        ("topics", "--topic", "t", "--at", "5"),
    ],
)
def test_the_error_of_a_time_has_the_forms_of_times_alone(words: tuple[str, ...]) -> None:
    done = run(*words, "-b", "127.0.0.1:1")
    assert done.exit_code == 2
    error = words_of(done.stderr)
    assert "ISO 8601" in error
    assert "earliest" not in error


# -- changes


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_key_that_is_reset_must_exist(
    here: tuple[str, str], topic: str, dry_run: tuple[str, ...]
) -> None:
    alter = ("topics", *here, "--alter", topic, "--delete-config")
    done = run(*alter, "retention.mss", *dry_run)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "'retention.mss'; did you mean retention.ms?" in done.stderr
    assert run(*alter, "retention.ms", *dry_run).exit_code == 0


# -- text


def test_the_size_of_a_volume_without_a_limit_is_a_dash(here: tuple[str, str]) -> None:
    lines = [line.split() for line in run("cluster", *here).stdout.splitlines()]
    head = next(line for line in lines if line[:2] == ["broker", "directory"])
    row = lines[lines.index(head) + 1]
    assert row[-2:] == ["-", "-"]  # free, of


def test_fields_of_a_record_are_apart_also_if_they_are_empty() -> None:
    def fields(key: bytes | None, value: bytes | None, header: bytes | None) -> list[str]:
        record = ConsumerRecord(
            "t",
            0,
            0,
            0,
            key,
            value,
            (("h", header),),
            timestamp_type=TimestampType.CREATE_TIME,
            leader_epoch=0,
        )
        return writer("table", ["t"])(record).decode().split()[3:]

    kinds = (None, b"", b"x")
    every = [fields(*each) for each in product(kinds, kinds, kinds)]
    assert {len(each) for each in every} == {3}
    assert len({tuple(each) for each in every}) == len(every)


# -- what produce says


def test_produce_says_that_the_cluster_has_created_the_topic(
    here: tuple[str, str], tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_text("a\n")
    name = f"created-{next(NUMBERS)}"
    first, second = (run("produce", name, *here, "-i", lines) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"topic {name} was created" in first.stderr
    assert second.stderr == "1 delivered, 0 failed\n"


def test_produce_counts_an_empty_input(here: tuple[str, str], topic: str) -> None:
    done = run("produce", topic, *here, "-i", os.devnull)
    assert (done.exit_code, done.stderr) == (0, "0 delivered, 0 failed\n")
