"""What `topics`, `groups` and `produce` change in a cluster: results, confirmation, suggestions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import COMMAND, read_terminal, run, terminal
from tests.cli.verbs.test_live import ran_alone

pytestmark = pytest.mark.timeout(120)
NUMBERS = count()


@pytest.fixture(scope="module")
def here() -> Iterator[tuple[str, str]]:
    """The option that names a cluster, which does not create topics on its own."""
    settings = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}
    with ServerThread(ServerConfig(settings=settings)) as server:
        yield ("-b", server.bootstrap)


@pytest.fixture
def topic(here: tuple[str, str]) -> str:
    """A topic with two partitions."""
    name = f"changed-{next(NUMBERS)}-orders"
    assert run("topics", *here, "--create", f"{name}:2").exit_code == 0
    return name


def partitions(here: tuple[str, str], topic: str) -> int | None:
    """Count the partitions of a topic; None if it does not exist."""
    topics = json.loads(run("topics", *here, "--json").stdout)["topics"]
    return next((len(each["partitions"]) for each in topics if each["name"] == topic), None)


def changes(*words: object) -> Any:
    done = run(*words, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


# -- topics


def test_a_topic_is_altered(here: tuple[str, str], topic: str) -> None:
    alter = ("topics", *here, "--alter", f"{topic}:5", "--topic-config", "retention.ms=9")
    done = run(*alter, "--dry-run")
    lines = [f"would alter topic {topic}: 5 partitions", f"would alter topic {topic}: retention."]
    assert [a.startswith(b) for a, b in zip(done.stdout.splitlines(), lines, strict=True)]
    assert partitions(here, topic) == 2
    found = changes(*alter)
    assert found["dry_run"] is False
    assert found["changes"] == [
        {"action": "alter", "topic": topic, "partitions": 5},
        {"action": "alter", "topic": topic, "configs": {"retention.ms": "9"}},
    ]
    assert partitions(here, topic) == 5
    again = run(*alter)
    assert (again.exit_code, again.stdout) == (1, "")
    assert topic in again.stderr
    reset = changes("topics", *here, "--alter", topic, "--delete-config", "retention.ms")
    assert reset["changes"][0]["configs"] == {"retention.ms": None}


def test_changes_before_an_error_are_reported(here: tuple[str, str], topic: str) -> None:
    done = run("topics", *here, "--alter", f"{topic}:3", "--topic-config", "nonsense=1", "--json")
    assert done.exit_code == 1
    assert "nonsense" in done.stderr
    assert [each["partitions"] for each in json.loads(done.stdout)["changes"]] == [3]


def test_a_dry_run_creates_nothing(here: tuple[str, str], topic: str) -> None:
    done = run("topics", *here, "--create", "planned:3", "--dry-run")
    assert done.stdout == "would create topic planned: 3 partitions\n"
    assert partitions(here, "planned") is None
    invalid = run("topics", *here, "--create", "planned", "--topic-config", "x=1", "--dry-run")
    assert invalid.exit_code == 1
    for words in (("--create", "planned"), ("--alter", topic)):
        misspelt = run("topics", *here, *words, "--topic-config", "retention.mss=1")
        assert misspelt.exit_code == 1
        assert "did you mean retention.ms?" in misspelt.stderr


def test_nothing_is_deleted_if_one_topic_is_unknown(here: tuple[str, str], topic: str) -> None:
    misspelt = topic.replace("orders", "ordrs")
    done = run("topics", *here, "--delete", topic, "--delete", misspelt, "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"topic {misspelt}; did you mean {topic}?" in done.stderr
    assert partitions(here, topic) == 2


@pytest.mark.parametrize(("typed", "left"), [("y\n", None), ("\n", 2), ("\x04", 2)])
def test_a_deletion_is_confirmed(
    here: tuple[str, str], topic: str, typed: str, left: int | None
) -> None:
    words = [*COMMAND, "topics", *here, "--delete", topic]
    with terminal(80) as (ours, theirs):
        process = subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown = b""
        for data in read_terminal(ours):
            shown += data
            if shown.endswith(b"[y/N]: ") and typed:
                os.write(ours, typed.encode())
                typed = ""
        assert process.stdout is not None
        out = process.stdout.read().decode()
        process.stdout.close()
        code = process.wait()
    assert f"topic {topic} and its records: 2 partitions".encode() in shown
    assert partitions(here, topic) == left
    assert (code, out) == (
        (0, f"deleted topic {topic}: 2 partitions\n") if left is None else (1, "")
    )


# -- groups


def test_groups_are_deleted_all_or_none(here: tuple[str, str], topic: str) -> None:
    group = f"group-of-{topic}"
    start = ("--reset-offsets", "--execute", "--topic", topic, "--to-earliest")
    assert run("groups", *here, "--group", group, *start).exit_code == 0
    misspelt = group.replace("group", "gruop")
    for words in (("--delete", group, "--delete", misspelt, "--yes"), ("--group", misspelt)):
        done = run("groups", *here, *words)
        assert (done.exit_code, done.stdout) == (1, "")
        assert f"no such group: '{misspelt}'; did you mean {group}?" in done.stderr
    planned = changes("groups", *here, "--delete", group, "--dry-run")
    assert planned == {"dry_run": True, "changes": [{"action": "delete", "group": group}]}
    one = ("--group", group, "--delete-offsets", "--topic", f"{topic}:1", "--yes")
    assert changes("groups", *here, *one)["changes"] == [
        {"action": "delete", "group": group, "topic": topic, "partition": 1}
    ]
    assert changes("groups", *here, "--delete", group, "--yes")["changes"] == planned["changes"]
    assert run("groups", *here, "--group", group).exit_code == 1


# -- records

BYTES: Final = b"\x00one\ntwo\r\n\xff\n"


def test_a_file_is_one_record(here: tuple[str, str], topic: str, tmp_path: Path) -> None:
    path = tmp_path / "photo"
    path.write_bytes(BYTES)
    sent = ran_alone("produce", topic, *here, "-i", str(path), "--whole-input", "--key", "k")
    assert sent == (0, "", "1 delivered, 0 failed\n")
    [line] = ran_alone("consume", topic, *here, "-e", "--json")[1].splitlines()
    record = json.loads(line)
    assert record["value"] == {"hex": BYTES.hex()}
    assert record["key"] == {"text": "k"}
    path.write_bytes(b"")
    assert ran_alone("produce", topic, *here, "-i", str(path), "--whole-input")[0] == 0
    assert len(ran_alone("consume", topic, *here, "-e", "--json")[1].splitlines()) == 2


@pytest.mark.parametrize("verb", ["consume", "produce"])
def test_a_similar_topic_is_suggested(here: tuple[str, str], topic: str, verb: str) -> None:
    misspelt = topic.replace("orders", "odrers")
    code, out, error = ran_alone(
        verb, misspelt, *here, "-X", "metadata.max.age.ms=100", given="x\n"
    )
    assert (code, out) == (1, "")
    assert f"did you mean {topic}?" in error
