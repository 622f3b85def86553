"""What the own dissector of Wireshark lacks, as docs/wireshark.md says, by golden messages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kafkawire.messages import REGISTRY
from tests.conftest import ROOT, missing

from . import frames
from .tshark import program, run

PAGE: Final = ROOT / "docs" / "wireshark.md"
MEASURED: Final = "4.0."
UNKNOWN: Final = re.compile(r"Unknown (\d+) API key")
UNSUPPORTED: Final = re.compile(r"Unsupported \w+ version\. Supports v0(?:-(\d+))?\.")


def complaints(path: Path) -> Iterator[tuple[str, str]]:
    """Give each API with what Wireshark's dissector says of its requests."""
    sent = frames.golden_traffic(path, most=1)
    by_id = {str(each.correlation_id): each for each in sent if each.direction == "request"}
    text = run(
        path,
        *("-d", "tcp.port==9092,kafka", "-Y", "tcp.dstport == 9092", "-T", "fields"),
        *("-e", "kafka.correlation_id", "-e", "_ws.expert.message"),
        own=False,
    )
    for line in text.splitlines():
        number, _, said = line.partition("\t")
        if number in by_id:
            yield by_id[number].row["message"].removesuffix("Request"), said


def newest(api: str) -> int:
    return REGISTRY.get(f"{api}Request").last


def test_the_page_lists_what_it_lacks(tmp_path: Path) -> None:
    version = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
    if MEASURED not in version.stdout.splitlines()[0]:
        missing(f"tshark {MEASURED}x")
    unknown: set[str] = set()
    old: dict[str, int] = {}
    for api, said in complaints(tmp_path / "golden.pcap"):
        if UNKNOWN.search(said) and api != "ApiVersions":  # which lists keys of other APIs
            unknown.add(api)
        elif found := UNSUPPORTED.search(said):
            old[api] = int(found[1] or 0)
    page = PAGE.read_text(encoding="utf-8")
    (listed,) = re.findall(r"It does not know (\d+) of (\d+) APIs: ([^.]*)\.", page)
    assert int(listed[0]) == len(unknown)
    assert int(listed[1]) == len({info.api_key for info in REGISTRY if info.type == "request"})
    assert re.findall(r"\w+", listed[2].replace(" and ", " ")) == sorted(unknown)
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert rows == [(api, str(last), str(newest(api))) for api, last in sorted(old.items())]
