"""`produce --transactional-id` and `consume --isolation`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.live.delivery_report import ABORTED, COMMITTED, UNKNOWN
from tests.cli.reports import run

pytestmark = pytest.mark.kafka(topics={"t": 1})


def produced(broker: ServerThread, folder: Path, text: str, *words: str) -> tuple[int, str]:
    """Produce lines; return the exit code and what is on standard error."""
    lines = folder / "lines"
    lines.write_text(text)
    done = run("produce", "t", "-b", broker.bootstrap, "-i", str(lines), *words)
    return done.exit_code, done.stderr


def consumed(broker: ServerThread, *words: str) -> list[str]:
    done = run("consume", "t", "-b", broker.bootstrap, "-f", "value", "-e", *words)
    assert done.exit_code == 0, done.stderr
    return done.stdout.split()


COMMITTED_ONLY = ("--isolation", "read_committed")
SOON = (
    *("-X", "max.block.ms=2000", "-X", "delivery.timeout.ms=2500"),
    *("-X", "request.timeout.ms=2000"),
)
"""Settings with which a commit gives up soon, and a busy machine reaches it."""


@pytest.mark.parametrize(
    "words", [("--transactional-id", "import"), ("-X", "transactional.id=import")]
)
def test_all_lines_are_committed(
    kafka_broker: ServerThread, tmp_path: Path, words: tuple[str, ...]
) -> None:
    code, shown = produced(kafka_broker, tmp_path, "a\nb\n", *words)
    assert (code, shown) == (0, f"2 delivered, 0 failed, {COMMITTED}\n")
    assert consumed(kafka_broker, *COMMITTED_ONLY) == ["a", "b"]


def test_a_line_that_is_not_delivered_aborts_all(
    kafka_broker: ServerThread, tmp_path: Path
) -> None:
    given = ("--transactional-id", "import", "-X", "max.request.size=200", "-X", "linger.ms=0")
    code, shown = produced(kafka_broker, tmp_path, f"a\n{'x' * 500}\nb\n", *given)
    assert code == 1
    assert "line 2: MESSAGE_TOO_LARGE" in shown
    assert shown.endswith(f", {ABORTED}\n")
    assert consumed(kafka_broker, *COMMITTED_ONLY) == []


@pytest.mark.parametrize(
    ("fault", "words", "cause", "ended"),
    [
        ({"error": "PRODUCER_FENCED"}, (), "PRODUCER_FENCED", ABORTED),
        ({"error": "TRANSACTION_ABORTABLE", "nth": 1}, (), "TRANSACTION_ABORTABLE", ABORTED),
        ({"error": "UNKNOWN_SERVER_ERROR"}, (), "UNKNOWN_SERVER_ERROR", UNKNOWN),
        (
            {"error": "CONCURRENT_TRANSACTIONS", "probability": 1.0},
            SOON,
            "timed out: commit within max.block.ms",
            UNKNOWN,
        ),
    ],
)
def test_a_commit_that_fails_is_an_error(
    kafka_broker: ServerThread,
    tmp_path: Path,
    fault: dict[str, object],
    words: tuple[str, ...],
    cause: str,
    ended: str,
) -> None:
    kafka_broker.fault("EndTxn", **fault)  # type: ignore[arg-type]
    code, shown = produced(kafka_broker, tmp_path, "a\n", "--transactional-id", "import", *words)
    assert code == 1
    assert cause in shown
    assert f"1 delivered, 0 failed, {ended}" in shown


def test_what_is_not_committed_is_read_by_default(
    kafka_broker: ServerThread, tmp_path: Path
) -> None:
    kafka_broker.fault("EndTxn", error="PRODUCER_FENCED")
    produced(kafka_broker, tmp_path, "a\n", "--transactional-id", "import")
    assert consumed(kafka_broker) == ["a"]
    assert consumed(kafka_broker, "--isolation", "read_uncommitted") == ["a"]
    assert consumed(kafka_broker, *COMMITTED_ONLY) == []


def test_settings_that_do_not_fit_are_usage_errors(tmp_path: Path) -> None:
    here = ("-b", "127.0.0.1:1")
    lines = tmp_path / "lines"
    lines.write_text("a\n")
    sent = ("produce", "t", *here, "-i", str(lines), "--transactional-id", "x", "-X", "acks=1")
    for words, named in (
        (("consume", "t", *here, "--isolation", "dirty"), "isolation.level"),
        (sent, "transactional.id"),
    ):
        done = run(*words)
        assert done.exit_code == 2, done.stderr
        assert named in done.stderr
