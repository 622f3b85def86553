"""Runs the calls in one JVM, and makes what they print at two brokers comparable.

calls ─▶ Tools.java ─▶ exit code, output ─▶ normalised (`PATTERNS`, lines sorted) ─▶ transcript
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final, TypedDict

from tests.real.compiler import compiled
from tests.real.java import OPTIONS, Installation, install

from .calls import FILES, Call, calls, scenarios

PROGRAM: Final = Path(__file__).with_name("Tools.java")
CALL_SECONDS: Final = 60
OPENED: Final = "--add-opens=java.base/java.lang=ALL-UNNAMED"
"""The shutdown hooks of the JVM are there."""
QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"

PATTERNS: Final = (
    (r"(?m)^\s*at [\w.$/]+\(.*\n?|^\s*\.\.\. \d+ more\n?", ""),  # stack traces
    (r"127\.0\.0\.1[: ]\d+|localhost:\d+|port=\d+", "HOST:PORT"),
    (r"(perf|console)-consumer-\d+", r"\1-consumer-N"),
    (r"\b(?=[\w-]*[A-Z0-9])(?=[\w-]*[a-z])(?!\w+Exception)[\w-]{22}(?![\w-])", "UUID"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"/[\w./-]*/(data|node)\b[\w./-]*", "LOG_DIR"),
    (r"\b1[6-9]\d{11}\b|\b2\d{12}\b", "TIME_MS"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.:,]\d+", "TIME"),
    (r"(?<=TIME, TIME, ).*", "FIGURES"),  # of performance tests
    (r"(?m)^(\d+ records sent), .*$", r"\1, FIGURES"),
    (r"(?m)^\d+\t\d+\.\d+$|(?<=^Avg latency: ).*|(?<=^Percentiles: ).*", "FIGURES"),
    (r"\d+ ms ago", "N ms ago"),
    (r"(?<=CompleteCommit)(.*TIME_MS\s+)\d+", r"\1N"),
    (r"(?m)((?:Epoch|HighWatermark):\s+)\d+", r"\1N"),  # of the metadata log
    (r"(?m)(^\d+ *\t\S+ *\t)\d+(?= *\t\d+ *\t(?:TIME_MS|N ms))", r"\1N"),
    (r'(?<="avg_throughput":)[\d.]+', "FIGURE"),
    (r"[ ]{2,}", " "),
)
"""What differs from run to run, and what stands for it."""
UNORDERED: Final = (
    r"(?<=Valid states are: ).*",
    r"(?<=only supports operations \[)[^]]*",
    r"(?<=takes one of these options: ).*",
    r"(?<=SCRAM credential configs for user-principal 'bob' are ).*",
    r'(?<="offsets":\[)[\d,]+',
)
"""What is listed in the order of a hash table."""
POLLED: Final = re.compile(r'"name":"(records_consumed|offsets_committed|offsets_acknowledged)"')
COUNT: Final = re.compile(r'"count":(\d+)')
"""The first of an event is that of all its partitions."""


class Result(TypedDict):
    """What a call did."""

    exit: int
    out: str
    err: str


def transcript(folder: Path, bootstrap: str) -> dict[str, str]:
    """Make all calls at a broker; return what each did, by its name."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    installation = compiled(replace(install(), options=(*OPTIONS, OPENED, QUIET)), PROGRAM)
    printed: dict[str, str] = {}
    for scenario, lines in scenarios().items():
        with Tools(installation) as tools:
            for call in calls(scenario, lines):
                printed[call.name] = normalised(tools.run(call, folder, bootstrap))
    return printed


class Tools:
    """A JVM that runs tools."""

    def __init__(self, installation: Installation) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            installation.command("Tools"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def __enter__(self) -> Tools:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, call: Call, folder: Path, bootstrap: str) -> Result:
        """Make a call and wait for its end. RuntimeError if the JVM ends with it."""
        arguments = [
            str(folder / word[1:]) if word.startswith("@") else word for word in call.at(bootstrap)
        ]
        request = {
            "main": call.main,
            "arguments": arguments,
            "stdin": call.stdin,
            "seconds": CALL_SECONDS,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{call.name}: the JVM ended")
        result: Result = json.loads(line)
        return result


def normalised(result: Result) -> str:
    """Return the exit code and the lines, sorted, without what differs from run to run."""
    text = _polls_together(result["out"]) + "\n" + result["err"]
    for pattern, name in PATTERNS:
        text = re.sub(pattern, name, text)
    for pattern in UNORDERED:
        text = re.sub(pattern, _sorted, text)
    lines = sorted(line.strip() for line in text.splitlines() if line.strip())
    return "\n".join([f"exit code {result['exit']}", *lines])


def _polls_together(text: str) -> str:
    """Join the events of verifiable consumers about polls: how many there are is by chance."""
    lines = []
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        polled = POLLED.search(line)
        if polled is None:
            lines.append(line)
        else:
            count = COUNT.search(line)
            counts[polled[1]] += int(count[1]) if count else 0
    return "\n".join([*lines, *(f"{name}: {count}" for name, count in counts.items())])


def _sorted(items: re.Match[str]) -> str:
    return ",".join(sorted(item.strip() for item in items[0].split(",")))
