"""Counts the findings in captures of traffic that works.

`python -m tests.reports.diagnosis.false_alarms` prints the rows of the table in docs/diagnose.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import kafkawire
from tests.conftest import FIXTURES
from tests.recordings import ANY_CAPTURE, third_party

FOLDERS: Final = {
    "clients at test brokers, as recorded": ("captures", "recordings"),
    "tunnels, proxies, link types": ("field",),
    "TLS, read without keys": ("tls",),
    "brokers with ZooKeeper, started and stopped": ("zookeeper",),
}
"""Rows of the table -> folders of fixtures."""

OTHERS: Final = "of other projects"
SEVERITIES: Final = ("critical", "warning", "notice")


def captures(row: str) -> list[Path]:
    """List the captures of a row of the table, but those of other projects."""
    return sorted(
        path for folder in FOLDERS[row] for path in (FIXTURES / folder).rglob(ANY_CAPTURE)
    )


def line(row: str, paths: Iterable[Path]) -> str:
    """Write a row of the table: the number of captures, and of findings by severity."""
    counts: Counter[str] = Counter()
    files = 0
    for path in paths:
        files += 1
        with kafkawire.open_capture(path) as capture:
            counts.update(one["severity"] for one in capture.diagnose())
    cells = (row, files, *(counts[severity] for severity in SEVERITIES))
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print the rows."""
    for row in FOLDERS:
        print(line(row, captures(row)))
    print(line(OTHERS, others()))


def others() -> list[Path]:
    """List the captures of other projects, where these are beside the checkout."""
    return third_party("public", ANY_CAPTURE)


if __name__ == "__main__":
    main()
