"""Shell completion of verbs and options."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kafkawire_cli.input.filters import complete_filter

ENDS = ("", "Request", "Response")
MAIN = "import sys; sys.argv = ['kafkawire']; from kafkawire_cli.main import main; main()"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_offered(shell: str) -> None:
    command = [sys.executable, "-m", "kafkawire_cli.main", "--show-completion", shell]
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "complete" in ran.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("kafkawire de", ["decode"]),
        ("kafkawire s", ["summary", "serve", "schema", "spark", "sql"]),
        ("kafkawire cl", ["clients", "cluster"]),
        ("kafkawire schema ", ["lint", "show", "diff", "merge", "coverage"]),
        ("kafkawire decode --red", ["--redact"]),
        ("kafkawire decode --format ", ["tree", "jsonl", "table"]),
        ("kafkawire decode --table ex", ["exchanges"]),
        ("kafkawire spark --table prob", ["problems"]),
        ("kafkawire decode --api Fet", ["Fetch", "FetchSnapshot"]),
        ("kafkawire explain --api FetchS", [f"FetchSnapshot{end}" for end in ENDS]),
        ("kafkawire encode --api FetchS", [f"FetchSnapshot{end}" for end in ENDS]),
        ("kafkawire schema show LeaderCh", ["LeaderChangeMessage"]),
        ("kafkawire schema coverage 4.", ["4.0", "4.1", "4.2", "4.3", "4.4"]),
        ("kafkawire readiness --target 2.8", ["2.8"]),
        ("kafkawire serve --release al", ["all"]),
        ("kafkawire decode --filter corr", ["correlation_id"]),
        ("kafkawire summary --filter corr", ["correlation_id"]),
    ],
)
def test_verbs_their_verbs_and_their_options_are_completed(words: str, offered: list[str]) -> None:
    environment = {
        **os.environ,
        "_KAFKAWIRE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    command = [sys.executable, "-c", MAIN]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert sorted(ran.stdout.split()) == sorted(offered)


@pytest.mark.parametrize(
    ("incomplete", "offered"),
    [
        ("ap", ["api"]),
        ("api == Fetc", ["api == Fetch", "api == FetchSnapshot"]),
        ("api==FETCHS", ["api==FetchSnapshot"]),
        ("latency > 1s and dire", ["latency > 1s and direction"]),
        ("direction != re", ["direction != request", "direction != response"]),
        ("api in (Fetch, Heartb", ["api in (Fetch, Heartbeat"]),
        ("api not in (Heartb", ["api not in (Heartbeat"]),
        ("error == UNKNOWN_TOPIC_O", ["error == UNKNOWN_TOPIC_OR_PARTITION"]),
        ("client ~ b", []),
        ("topic == b", []),
        ("unknown == b", []),
    ],
)
def test_filters_are_completed(incomplete: str, offered: list[str]) -> None:
    assert complete_filter(incomplete) == offered
