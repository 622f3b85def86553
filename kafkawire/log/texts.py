"""Reads Kafka's text files: checkpoints, partition.metadata, meta.properties, quorum-state.

An invalid line is a finding, and reading continues with the next one; lines are limited to
`MAX_LINE_BYTES`.

    *-offset-checkpoint      0 | count | (topic partition offset)*
    leader-epoch-checkpoint  0 | count | (epoch start-offset)*
    partition.metadata       version: 0 | topic_id: 22 characters of base64
    meta.properties          key=value, Java properties format
    quorum-state             one JSON object
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, NamedTuple

from ..protocol.json_form import uuid_bytes
from .files import LogFile
from .findings import Finding, Rule

MAX_LINE_BYTES: Final = 1 << 16
VERSION: Final = "0"
INT32: Final = 0x7FFF_FFFF
INT64: Final = 0x7FFF_FFFF_FFFF_FFFF


class PartitionOffset(NamedTuple):
    """An entry of a checkpoint: recovery point, cleaner offset, high watermark or log start."""

    line: int
    topic: str
    partition: int
    offset: int


class LeaderEpoch(NamedTuple):
    """The start offset of a leader epoch."""

    line: int
    epoch: int
    start_offset: int


class Property(NamedTuple):
    """A key and its value, as strings."""

    line: int
    key: str
    value: str


def lines(file: LogFile, stream: BinaryIO) -> Iterator[tuple[int, str] | Finding]:
    """Yield line numbers from 1, and lines without line ends."""
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES):
        number += 1
        if len(raw) == MAX_LINE_BYTES:
            text = f"line longer than {MAX_LINE_BYTES} bytes"
            yield Finding(file.path, number, Rule.LINE, f"{text}; rest of the file skipped")
            return
        try:
            yield number, raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield Finding(file.path, number, Rule.LINE, f"invalid UTF-8: {error.reason}")


# -- checkpoints


def read_offsets(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[PartitionOffset | Finding]:
    """Read an offset checkpoint, one row per partition."""
    for row in _checkpoint(file, stream, _partition_offset, verify):
        if isinstance(row, PartitionOffset | Finding):
            yield row


def read_leader_epochs(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[LeaderEpoch | Finding]:
    """Read a leader-epoch-checkpoint; epochs and their offsets must increase."""
    before: LeaderEpoch | None = None
    for row in _checkpoint(file, stream, _leader_epoch, verify):
        if isinstance(row, LeaderEpoch):
            if verify and before is not None and not _follows(row, before):
                text = f"epoch {row.epoch} from offset {row.start_offset} after epoch"
                text = f"{text} {before.epoch} from offset {before.start_offset}"
                yield Finding(file.path, row.line, Rule.ENTRY_ORDER, text)
            before = row
        if isinstance(row, LeaderEpoch | Finding):
            yield row


def _follows(epoch: LeaderEpoch, before: LeaderEpoch) -> bool:
    return epoch.epoch > before.epoch and epoch.start_offset >= before.start_offset


def _partition_offset(line: int, words: list[str]) -> PartitionOffset:
    topic, partition, offset = words
    return PartitionOffset(line, topic, _number(partition, INT32), _number(offset, INT64))


def _leader_epoch(line: int, words: list[str]) -> LeaderEpoch:
    epoch, start_offset = words
    return LeaderEpoch(line, _number(epoch, INT32), _number(start_offset, INT64))


def _number(text: str, most: int) -> int:
    if re.fullmatch(r"-?[0-9]{1,19}", text) is None or not -most - 1 <= int(text) <= most:
        raise ValueError(f"not a number in range: {text!r}")
    return int(text)


def _checkpoint(
    file: LogFile,
    stream: BinaryIO,
    make: Callable[[int, list[str]], PartitionOffset | LeaderEpoch],
    verify: bool,
) -> Iterator[PartitionOffset | LeaderEpoch | Finding]:
    count: int | None = None
    rows = 0
    number = 0
    for line in lines(file, stream):
        if isinstance(line, Finding):
            yield line
            continue
        number, text = line
        try:
            if number == 1:
                if text != VERSION:
                    yield Finding(
                        file.path,
                        1,
                        Rule.VERSION,
                        f"unsupported version {text[:40]!r}, expected {VERSION}",
                    )
                    return
            elif number == 2:
                count = _number(text, INT32)
            elif text:
                yield make(number, text.split())
                rows += 1
        except ValueError:
            yield Finding(file.path, number, Rule.LINE, f"invalid entry {text[:80]!r}")
    if verify and number and rows != count:
        text = f"expected {'no count' if count is None else count} entries, found {rows}"
        yield Finding(file.path, min(number, 2), Rule.COUNT, text)


# -- keys and values


def read_partition_metadata(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[Property | Finding]:
    """Read a partition.metadata: its version and the topic id."""
    wanted: dict[str, Callable[[str], bool]] = {
        "version": lambda text: text == VERSION,
        "topic_id": _is_uuid,
    }
    yield from _pairs(file, stream, re.compile(r"(\w+): ?(.*?) ?"), wanted if verify else {})


def read_properties(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[Property | Finding]:
    """Read a meta.properties; version 0 is that of ZooKeeper clusters."""
    wanted: dict[str, Callable[[str], bool]] = {"version": lambda text: text in ("0", "1")}
    pattern = re.compile(r"\s*((?:[^\s:=\\]|\\.)+)\s*[:=]?\s*(.*)")
    for pair in _pairs(file, stream, pattern, wanted if verify else {}):
        if isinstance(pair, Property):
            pair = pair._replace(key=_unescaped(pair.key), value=_unescaped(pair.value))
        yield pair


def _is_uuid(text: str) -> bool:
    try:
        return len(uuid_bytes(text)) == 16
    except ValueError:
        return False


def _unescaped(text: str) -> str:
    """Resolve the escape sequences of Java properties."""
    named = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return named.get(escaped, escaped)

    unescaped = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", plain, text)
    # Java escapes the two surrogates of a pair separately
    return unescaped.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _pairs(
    file: LogFile,
    stream: BinaryIO,
    pattern: re.Pattern[str],
    wanted: dict[str, Callable[[str], bool]],
) -> Iterator[Property | Finding]:
    seen = set()
    number = 1
    for line in lines(file, stream):
        if isinstance(line, Finding):
            yield line
            continue
        number, text = line
        if not text.strip() or text.lstrip()[0] in "#!":
            continue
        match = pattern.fullmatch(text)
        if match is None:
            yield Finding(
                file.path, number, Rule.LINE, f"expected key=value or key: value, got {text[:80]!r}"
            )
            continue
        yield Property(number, match[1], match[2])
        seen.add(match[1])
        if match[1] in wanted and not wanted[match[1]](match[2]):
            text = f"{match[1]} {match[2][:40]!r}"
            yield Finding(file.path, number, Rule.VERSION, f"unsupported {text}")
    for key in wanted.keys() - seen:
        yield Finding(file.path, number, Rule.MISSING, f"missing {key}")


def read_quorum_state(
    file: LogFile, stream: BinaryIO, *, verify: bool = True
) -> Iterator[Property | Finding]:
    """Read a quorum-state; values are JSON strings."""
    try:
        state = json.loads(stream.read(MAX_LINE_BYTES))
    except (ValueError, RecursionError) as error:
        yield Finding(file.path, 1, Rule.LINE, f"invalid JSON: {error}")
        return
    if not isinstance(state, dict):
        yield Finding(file.path, 1, Rule.LINE, "not a JSON object")
        return
    for key, value in state.items():
        # JSON can escape a lone surrogate, which UTF-8 cannot encode
        name = key.encode("utf-8", "backslashreplace").decode("utf-8")
        yield Property(1, name, json.dumps(value))
    if verify and state.get("data_version") not in (0, 1):
        text = f"unsupported data_version {state.get('data_version')!r}"
        yield Finding(file.path, 1, Rule.VERSION, text)
