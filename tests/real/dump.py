"""Parses the output of Kafka's dump tool for log files.

Every line of output is parsed, or it is an error.

    Dumping <file>                       one file after the other
    baseOffset: 0 lastOffset: 4 ...      a batch: names and values
    | offset: 0 CreateTime: 17 ...       a record of it: names and values, header keys, content
    offset: 5 position: 147              in other files, an entry: names and values
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkawire.log import InternalLog

from .java import Installation

TOOL: Final = "org.apache.kafka.tools.DumpLogSegments"
MAX_RECORD_BYTES: Final = 1 << 24

DECODER: Final = {
    None: "--print-data-log",
    InternalLog.OFFSETS: "--offsets-decoder",
    InternalLog.TRANSACTIONS: "--transaction-log-decoder",
    InternalLog.SHARE: "--share-group-state-decoder",
    InternalLog.METADATA: "--cluster-metadata-decoder",
}
"""Log -> the tool's option to decode its records; None is a client's topic."""

FILE: Final = re.compile(r"Dumping (/.+)")
START: Final = re.compile(
    r"Log starting offset: \d+|Snapshot end offset: \d+, epoch: \d+|KRaft bootstrap snapshot"
)
RECORD: Final = re.compile(r"\| (offset: .*?) headerKeys: \[(.*?)\]\s?(.*)")
PAIR: Final = re.compile(r"(\w+): (\S+)")
NULL: Final = "<DELETE>"


class Record(NamedTuple):
    """One record: `values` by the tool's names, and its content, text or decoded."""

    values: dict[str, str]
    header_keys: str
    content: object


class Batch(NamedTuple):
    """One batch: `values` by the tool's names."""

    values: dict[str, str]
    records: list[Record]


@dataclass
class File:
    """The content of a file: batches, or entries of an index or a snapshot of producers."""

    batches: list[Batch] = field(default_factory=list)
    entries: list[dict[str, str]] = field(default_factory=list)


def dump(
    installation: Installation, files: Iterable[Path], log: InternalLog | None = None
) -> dict[Path, File]:
    """Run the tool over files of one log, and parse its output."""
    said = installation.run(
        TOOL,
        *("--deep-iteration", DECODER[log], f"--max-message-size={MAX_RECORD_BYTES}"),
        f"--files={','.join(map(str, files))}",
    )
    return parse(said, content_of(log))


def parse(said: str, content: Callable[[str], object]) -> dict[Path, File]:
    """Parse the tool's output."""
    files: dict[Path, File] = {}
    for line in said.removesuffix("\n").split("\n"):
        if found := FILE.fullmatch(line):
            current = files[Path(found[1])] = File()
        elif found := RECORD.fullmatch(line):
            record = Record(dict(PAIR.findall(found[1])), found[2], content(found[3]))
            current.batches[-1].records.append(record)
        elif line.startswith("baseOffset: "):
            current.batches.append(Batch(dict(PAIR.findall(line)), []))
        elif not START.fullmatch(line):
            values = dict(PAIR.findall(line))
            assert values, f"the dump tool says: {line[:400]}"
            current.entries.append(values)
    return files


def content_of(log: InternalLog | None) -> Callable[[str], object]:
    """Choose how the content of a record is read."""
    return str if log is None else decoded


def decoded(text: str) -> object:
    """Parse a decoder's output: JSON after names, with or without a colon.

    Gives names and values in turn, as the tool prints them; text that holds no JSON as it is.
    """
    found: list[Any] = []
    while text:
        name, _, rest = text.partition(" ")
        if rest.startswith("{"):
            value, end = json.JSONDecoder().raw_decode(rest)
            text = rest[end:].lstrip()
        elif rest == NULL:
            value, text = None, ""
        else:
            return text
        found += [name.removesuffix(":"), value]
    return found
