"""The code blocks of the documentation, and a folder in which their commands run.

Languages say how a block is tested. `python` runs as it stands; `console` has commands after
`$ ` and, below them, their output or their error, in which a line `...` stands for any lines; `sh`
has commands without output; `py` is a fragment that its test completes; `ts` runs under Node and
prints what its comments say; `json`, `sql` and `toml` are data of their page; `mermaid` and `text`
are drawings; a block without a language is `sh`.
tests/test_pages.py lists which test runs which.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from joserfc.jwk import ECKey, KeySet

from kafkawire.log import encode_log_message
from kafkawire.messages.offset_commit_key import OffsetCommitKey
from kafkawire.messages.offset_commit_value import OffsetCommitValue
from kafkawire.records import BatchBuilder
from tests.command_server import python
from tests.conftest import ROOT

PAGES: Final = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
ELISION: Final = "..."
ERROR: Final = re.compile("^Error: ", re.MULTILINE)
"""What a command prints that fails."""
LOGS: Final = "/var/lib/kafka"
KEYS: Final = "/etc/kafka/keys.json"
COMMITTED: Final = OffsetCommitValue(offset=42, commit_timestamp=1_700_000_000_000)
"""The committed offset in the log of `__consumer_offsets-12`."""


class Block(NamedTuple):
    """A fenced code block; `page` is its path in the repository, `number` counts from 0."""

    page: str
    number: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """The id of its test."""
        return f"{self.page.removesuffix('.md')}-{self.number}"


class Command(NamedTuple):
    """A command line, and the output that the page shows; empty where it shows none."""

    line: str
    shown: str = ""


def blocks(page: str | None = None, language: str | None = None) -> list[Block]:
    """List the code blocks of a page or of all, in a language or in any."""
    found = []
    for path in PAGES:
        name = path.relative_to(ROOT).as_posix()
        if page in (None, name):
            text = path.read_text(encoding="utf-8")
            for number, match in enumerate(FENCE.finditer(text)):
                block = Block(name, number, match[2] or "sh", textwrap.dedent(match[3]))
                if language in (None, block.language):
                    found.append(block)
    return found


def commands(block: Block) -> list[Command]:
    """List the commands of a `console` or `sh` block; a backslash continues a line."""
    text = block.text.replace("\\\n", " ")
    if block.language != "console":
        return [Command(line) for line in text.splitlines() if line and not line.startswith("#")]
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        else:
            found[-1] = Command(found[-1].line, f"{found[-1].shown}{line}\n")
    return found


def agrees(shown: str, printed: str) -> bool:
    """Say whether output is what a page shows, where `...` on a line of its own is any lines."""
    parts = [
        r"(?:.*\n)*?" if line == ELISION else re.escape(f"{line}\n") for line in shown.splitlines()
    ]
    return re.fullmatch("".join(parts), printed) is not None


def environment() -> dict[str, str]:
    """Variables for another Python that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}


TCPDUMP: Final = """
import pathlib, sys
target = sys.argv[sys.argv.index("-w") + 1]
if target == "-":
    sys.stdout.buffer.write(pathlib.Path("trace.pcap").read_bytes())
else:
    assert target.endswith(".pcap"), target
"""
"""Stands for tcpdump, which needs privileges: writes a capture to a pipe."""
PIP: Final = """
import importlib.metadata, re, sys
install, requirement = sys.argv[1:]
name, extras = re.fullmatch(r"(\\w+)\\[([a-z,]+)\\]", requirement).groups()
known = importlib.metadata.metadata(name).get_all("Provides-Extra")
assert install == "install" and set(extras.split(",")) <= set(known), (requirement, known)
"""
"""Stands for pip, whose installation would change the one of the tests: the extras exist."""


class Playground:
    """A folder with what the commands of the pages name.

    trace.pcap, trace-1.pcap, trace-2.pcap, captures/, fixtures/, schemas/; my-schemas/, old/, new/
    of schemas; jars of kafka-clients; orders-0/, __consumer_offsets-12/ and copied.log of a broker,
    which stand for /var/lib/kafka too; kafkawire, pip, python and tcpdump as commands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("fixtures", "schemas"):
            (folder / name).symlink_to(ROOT / name)
        recorded = ROOT / "fixtures" / "captures"
        (folder / "trace.pcap").symlink_to(recorded / "kcat-kf.pcap")
        (folder / "trace-1.pcap").symlink_to(recorded / "ck-848.pcap")
        (folder / "trace-2.pcap").symlink_to(recorded / "ck-txn.pcap")
        (folder / "captures").mkdir()
        (folder / "captures" / "ck-txn.pcap").symlink_to(recorded / "ck-txn.pcap")
        self._write_schemas()
        self._write_logs()
        self._write_keys()
        self._write_programs()
        path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
        self.environment = {**environment(), "PATH": path}

    def _write_schemas(self) -> None:
        schemas = {
            f"{json.loads(block.text)['name']}.json": block.text
            for block in blocks("docs/guide/codecs.md", "json")
        }
        for name in ("my-schemas", "old", "new"):
            (self.folder / name).mkdir()
            for file, schema in schemas.items():
                text = schema.replace("0-1", "0-2") if name == "new" else schema
                (self.folder / name / file).write_text(text)
        for version in ("4.3.1", "4.4.0"):  # they stand for those of Kafka
            with zipfile.ZipFile(self.folder / f"kafka-clients-{version}.jar", "w") as jar:
                for file, schema in schemas.items():
                    jar.writestr(f"common/message/{file}", schema)

    def _write_logs(self) -> None:
        offsets = BatchBuilder(base_offset=0)
        for partition in range(2):
            key = OffsetCommitKey(group="billing", topic="orders", partition=partition)
            offsets.append(encode_log_message(key, 0), encode_log_message(COMMITTED, 3))
            offsets.append(encode_log_message(key, 0), None)
        orders = BatchBuilder(base_offset=0)
        orders.append(b"alice", b"apples")
        logs = {"orders-0": orders.build(), "__consumer_offsets-12": offsets.build()}
        for top in (self.folder, self.folder / LOGS[1:]):
            for name, data in logs.items():
                (top / name).mkdir(parents=True)
                (top / name / "00000000000000000000.log").write_bytes(data)
        (self.folder / "copied.log").write_bytes(logs["orders-0"])

    def _write_keys(self) -> None:
        path = self.folder / KEYS[1:]
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(KeySet([ECKey.generate_key("P-256")]).as_dict(private=False)))

    def _write_programs(self) -> None:
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "pip.py").write_text(PIP)
        (self.folder / "bin" / "tcpdump.py").write_text(TCPDUMP)
        programs = {
            "kafkawire": "-m kafkawire_cli.main",
            "python": "",
            "pip": str(self.folder / "bin" / "pip.py"),
            "tcpdump": str(self.folder / "bin" / "tcpdump.py"),
        }
        for name, arguments in programs.items():
            program = python() if name == "kafkawire" else sys.executable
            file = self.folder / "bin" / name
            file.write_text(f'#!/bin/sh\nexec "{program}" {arguments} "$@"\n')
            file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def run(self, line: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a command line of a page, in bash."""
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", self.located(line)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def together(self, lines: list[str]) -> None:
        """Run nodes beside each other until all listen. The first line sets what they share."""
        shared, *servers = lines
        with ExitStack() as stack:
            running = []
            for line in servers:
                process = subprocess.Popen(
                    ["bash", "-c", f"{shared}; exec {self.located(line)}"],
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                stack.enter_context(process)
                stack.callback(process.kill)
                stop = threading.Timer(120, process.kill)
                stop.start()
                stack.callback(stop.cancel)
                running.append(process)
            for process in running:
                assert process.stdout is not None
                while not (read := process.stdout.readline()).startswith("listening on"):
                    assert read, f"ended: {process.args!r}"

    def interrupted(self, line: str) -> tuple[str, int, str]:
        """Run a command that does not end by itself until its first line, of a node until it
        listens, then press Ctrl-C: the line, the exit code, standard error.
        """
        with subprocess.Popen(
            ["bash", "-c", f"exec {self.located(line)}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            stop = threading.Timer(120, process.kill)
            stop.start()
            try:
                first = process.stdout.readline()
                while first and line.startswith("kafkawire serve") and first[0].isdigit():
                    first = process.stdout.readline()  # of a node, about itself
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=60)
            finally:
                stop.cancel()
                process.kill()
        return first, process.returncode, errors

    def located(self, line: str) -> str:
        """Put the paths of a broker into this folder, and servers on free ports."""
        for path in (LOGS, KEYS):
            line = line.replace(path, str(self.folder / path[1:]))
        return f"{line} --port 0" if line.startswith("kafkawire serve") else line
