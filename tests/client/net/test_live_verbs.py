"""What is behind `kafkawire produce` and the verbs for live topics, against our own broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from kafkawire.net.server_thread import ServerThread
from kafkawire_cli import produce, topics_verb

pytestmark = pytest.mark.timeout(60)
app = typer.Typer()
app.command("produce")(produce.produce)
app.add_typer(topics_verb.app, name="topics")
NOBODY = "127.0.0.1:1"


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread() as running:
        yield running


def ran(*words: str, given: str = "") -> tuple[int, str, str]:
    result = CliRunner().invoke(app, words, input=given)
    return result.exit_code, result.stdout, result.stderr


def test_a_topic_from_its_making_to_its_end(server: ServerThread) -> None:
    here = ("-b", server.bootstrap)
    assert ran("topics", "create", "orders", "-p", "2", "-c", "retention.ms=9", *here)[0] == 0
    assert ran("topics", "list", *here)[1] == "orders\n"
    code, shown, _ = ran("topics", "describe", "orders", *here)
    assert code == 0
    assert shown.splitlines()[0].startswith("orders  2 partitions  id ")
    assert shown.splitlines()[2] == "  1  leader 1  replicas 1  isr 1"
    code, _, error = ran("topics", "create", "orders", *here)
    assert (code, "TOPIC_ALREADY_EXISTS" in error) == (1, True)
    assert ran("topics", "delete", "orders", *here)[0] == 0
    assert ran("topics", "list", *here)[1] == ""


def test_lines_become_records(server: ServerThread) -> None:
    here = ("-b", server.bootstrap)
    ran("topics", "create", "t", "-p", "1", *here)
    lines = "a:1\nplain\nb:NULL\n\n"
    code, told, count = ran("produce", "t", "-K", ":", "--null", "NULL", "-v", *here, given=lines)
    assert (code, count) == (0, "4 delivered, 0 failed\n")
    assert told.splitlines() == [f"t-0 {offset}" for offset in range(4)]
    partition = server.server.cluster.topics.partition("t", 0)
    assert partition is not None
    assert partition.log.log_end_offset == 4


def test_what_was_not_delivered_is_told_line_by_line(server: ServerThread) -> None:
    here = ("-b", server.bootstrap, "-X", "max.request.size=200")
    code, _, said = ran("produce", "t", *here, given=f"short\n{'x' * 500}\nshort\n")
    assert code == 1
    assert "line 2: MESSAGE_TOO_LARGE" in said
    assert said.endswith("2 delivered, 1 failed\n")


@pytest.mark.parametrize("setting", ["linger=5", "acks=7", "nonsense"])
def test_a_wrong_setting_is_a_usage_error(setting: str) -> None:
    code, _, said = ran("produce", "t", "-b", NOBODY, "-X", setting)
    assert code == 2
    assert setting.partition("=")[0] in said


def test_nobody_answers() -> None:
    code, _, said = ran("topics", "list", "-b", NOBODY, "-X", "default.api.timeout.ms=300")
    assert code == 1
    assert said.startswith("kafkawire: ")
