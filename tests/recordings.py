"""Finds recordings: our own, which are in fixtures/, and captures of others beside the checkout.

Captures of others are not part of the repository. A test that needs them has the marker
`third_party`: it is collected only where they are, and the summary says so where they are not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
OWN: Final = (
    ROOT / "fixtures" / "captures",
    ROOT / "fixtures" / "recordings" / "live",
    ROOT / "fixtures" / "recordings" / "variants",
)
THIRD_PARTY: Final = ROOT.parent / "shared" / "captures"
ANY_CAPTURE: Final = "*.pcap*"
"""The pattern of captures of any format, compressed ones too."""


def own(pattern: str) -> list[Path]:
    """List the files of our own recordings that match a pattern, by name.

    A recording is NAME.pcap, a changed one NAME--CHANGE.pcap; what other tools saw in it is beside
    it as NAME.truth.jsonl.gz, NAME.kmsg.jsonl.gz and NAME.records.jsonl.gz.
    """
    paths = [path for folder in OWN for path in folder.glob(pattern)]
    return sorted(paths, key=lambda path: path.name)


def recording(name: str) -> Path:
    """Find a file of our own recordings by its name."""
    (path,) = own(name)
    return path


def unchanged(pattern: str) -> list[Path]:
    """List the files of recordings as they were made."""
    return [path for path in own(pattern) if "--" not in path.name]


def variants(pattern: str) -> list[Path]:
    """List the files of changed recordings."""
    return [path for path in own(pattern) if "--" in path.name]


def third_party(folder: str, pattern: str) -> list[Path]:
    """List files of others: none where they are not beside the checkout."""
    return sorted((THIRD_PARTY / folder).glob(pattern))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of captures of others where these are not."""
    if THIRD_PARTY.exists():
        return
    absent = [item for item in items if item.get_closest_marker("third_party")]
    if absent:
        config.hook.pytest_deselected(items=absent)
        items[:] = [item for item in items if not item.get_closest_marker("third_party")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report in the summary that tests were not collected."""
    if not THIRD_PARTY.exists():
        terminalreporter.write_line(
            "captures of others are not beside the checkout: tests marked third_party not collected"
        )
