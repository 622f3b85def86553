"""Completion by the shell: names of topics and groups, from the cluster that the options name."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from kafkawire_cli.completion_words import joined_words
from tests.cli.reports import run
from tests.conftest import missing

pytestmark = pytest.mark.timeout(120)

TOPICS: Final = ("orders", "orders-returned", "payments")
VARIABLE: Final = "_KAFKAWIRE_COMPLETE"
PATIENT: Final = "from kafkawire_cli.live import completion; completion.LIMIT_S = 60"
"""Waits for a cluster as long as a machine that is busy needs."""
PROGRAM: Final = "import sys; sys.argv = ['kafkawire']; from kafkawire_cli.main import main; main()"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ServerThread(ServerConfig(topics=dict.fromkeys(TOPICS, 1))) as server:
        reset = ("--reset-offsets", "--topic", "orders", "--to-earliest", "--execute")
        for group in ("audit", "billing"):
            done = run("groups", "-b", server.bootstrap, "--group", group, *reset)
            assert done.exit_code == 0, done.output
        yield server.bootstrap


def completed(words: list[str], before: str = PATIENT, **more: str) -> list[str]:
    """Complete the last word, as bash requests it. before: what the process does first."""
    place = str(len(words))
    environment = {VARIABLE: "complete_bash", "COMP_WORDS": "\n".join(["kafkawire", *words])}
    done = subprocess.run(
        [sys.executable, "-c", f"{before}; {PROGRAM}"],
        env={**os.environ, **environment, "COMP_CWORD": place, **more},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_names_of_the_cluster(bootstrap: str) -> None:
    host, port = bootstrap.split(":")
    split = ["-b", host, ":", port]  # as bash splits it
    assert completed(["topics", *split, "--topic", "ord"]) == ["orders", "orders-returned"]
    assert completed(["consume", *split, "pay"]) == ["payments"]
    assert completed(["groups", *split, "--delete", "b"]) == ["billing"]
    named = {"KAFKAWIRE_BOOTSTRAP_SERVERS": bootstrap}
    assert completed(["topics", "--delete", "=", "pa"], **named) == ["payments"]


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of something that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


SECRET: Final = (
    "-X",
    "sasl.mechanism=PLAIN",
    "-X",
    "sasl.username=a",
    "-X",
    "sasl.password=hunter2",
)


@pytest.mark.parametrize(
    "options",
    [
        ("-b", "127.0.0.1:1"),
        ("-b", "silent"),
        ("-b", "http://x"),
        ("--profile", "none"),
        ("--config", "none"),
        ("-b", "127.0.0.1:1", *SECRET),
        ("-b", "127.0.0.1:1", "-X", "nonsense=1"),
    ],
    ids=" ".join,
)
def test_no_names_and_no_messages_without_a_cluster(options: tuple[str, ...], silent: str) -> None:
    words = [silent if each == "silent" else each for each in options]
    assert completed(["topics", *words, "--topic", ""], before="pass") == []


def test_captures_are_not_a_reason_to_connect() -> None:
    assert completed(["topics", "--topic", ""]) == []


@pytest.mark.parametrize(
    ("words", "index", "joined", "place"),
    [
        (["k", "-b", "h", ":", "9092", "--topic", ""], 6, ["k", "-b", "h:9092", "--topic"], 4),
        (["k", "--topic", "=", "or"], 3, ["k", "--topic=or"], 1),
        (["k", "--topic", "="], 2, ["k", "--topic="], 1),
        (["k", "-X", "a", "=", "b", "-b"], 5, ["k", "-X", "a=b", "-b"], 3),
        (["k", "-b", "h", ":", "--topic"], 4, ["k", "-b", "h:", "--topic"], 3),
    ],
)
def test_words_are_joined(words: list[str], index: int, joined: list[str], place: int) -> None:
    environment = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(index)}
    assert joined_words(environment) == {"COMP_WORDS": " ".join(joined), "COMP_CWORD": str(place)}


def test_an_open_quote_stays_a_word() -> None:
    found = joined_words({"COMP_WORDS": "k --filter 'api == Fe", "COMP_CWORD": "2"})
    assert found == {"COMP_WORDS": "k --filter 'api == Fe'", "COMP_CWORD": "2"}
    assert joined_words({"COMP_WORDS": "k", "COMP_CWORD": "x"}) == {}


def test_bash_shows_the_names(bootstrap: str, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        missing("bash")
    command = tmp_path / "kafkawire"
    command.write_text(
        f"#!{sys.executable}\n{PATIENT}\nfrom kafkawire_cli.main import main\nmain()\n"
    )
    command.chmod(0o755)
    host, port = bootstrap.split(":")
    script = f"""
        source <({VARIABLE}=source_bash kafkawire)
        COMP_WORDS=(kafkawire topics -b {host} : {port} --topic ord)
        COMP_CWORD=7
        _kafkawire_completion kafkawire
        echo "${{COMPREPLY[@]}}"
    """
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.stdout.split()[-2:] == ["orders", "orders-returned"]
