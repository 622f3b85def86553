"""Reads and writes the JSON files of kafka-reassign-partitions.

{"version": 1, "topics": [{"topic": "orders"}]}                                   to move
{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}

A file may also be the output of `--generate` of that tool, or of `kafkawire reassign`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeGuard

import typer

STDIN: Final = "-"
ANY_DIRECTORY: Final = "any"
VERSION: Final = 1
PROPOSED: Final = "Proposed "
"""The heading of a proposal in the output of `--generate`, also of Kafka's own tool."""
OURS_PROPOSED: Final = "proposed"
"""The member of a proposal in the output of `--generate --format json`."""

Partition = tuple[str, int]
Assignment = Mapping[Partition, Sequence[int]]
"""Partition -> ids of the brokers with its replicas, the preferred leader first."""


def read_topics(path: Path, option: str) -> list[str]:
    """Read the topics to move. What is not valid is a usage error with its place."""
    rows = _rows(path, option, "topics")
    return list(dict.fromkeys(_name(row.get("topic"), place, option) for place, row in rows))


def read_assignment(path: Path, option: str) -> dict[Partition, list[int]]:
    """Read the replicas of partitions. What is not valid is a usage error with its place."""
    assignment: dict[Partition, list[int]] = {}
    for place, row in _rows(path, option, "partitions"):
        topic, number, replicas = (row.get(name) for name in ("topic", "partition", "replicas"))
        name = _name(topic, place, option)
        if not _is_id(number):
            raise _invalid(option, f"{place}.partition", "a number of a partition")
        partition = (name, number)
        if not isinstance(replicas, list) or not replicas or not all(map(_is_id, replicas)):
            raise _invalid(option, f"{place}.replicas", "a list of ids of brokers")
        if len(set(replicas)) < len(replicas):
            raise _invalid(option, f"{place}.replicas", "each broker once")
        if partition in assignment:
            raise _invalid(option, place, "each partition once")
        directories = row.get("log_dirs", [])
        if not isinstance(directories, list) or set(map(str, directories)) - {ANY_DIRECTORY}:
            raise _invalid(
                option, f"{place}.log_dirs", '"any" (`kafkawire log-dirs --move` chooses one)'
            )
        assignment[partition] = replicas
    return assignment


def _proposal(text: str) -> str:
    """Return what a tool proposed, of its whole output; another text as it is."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(PROPOSED):
            return next(filter(str.strip, lines), text)
    return text


def _rows(path: Path, option: str, member: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects of the list in a file, with their places."""
    try:
        text = sys.stdin.read() if str(path) == STDIN else path.read_text("utf-8")
        content = json.loads(_proposal(text))
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint=option) from None
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{path}: not JSON: {error}", param_hint=option) from None
    if isinstance(content, dict):
        content = content.get(OURS_PROPOSED, content)
    if not isinstance(content, dict) or content.get("version", VERSION) != VERSION:
        raise _invalid(option, str(path), f"an object of version {VERSION}")
    rows = content.get(member)
    if not isinstance(rows, list) or not rows:
        raise _invalid(option, f"{path}: {member}", "a list that is not empty")
    places = [(f"{path}: {member}[{index}]", row) for index, row in enumerate(rows)]
    for place, row in places:
        if not isinstance(row, dict):
            raise _invalid(option, place, "an object")
    return places


def _name(value: object, place: str, option: str) -> str:
    if not isinstance(value, str) or not value:
        raise _invalid(option, f"{place}.topic", "a name")
    return value


def _is_id(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 1 << 31


def _invalid(option: str, place: str, expected: str) -> typer.BadParameter:
    return typer.BadParameter(f"{place}: expected {expected}", param_hint=option)


def as_file(assignment: Assignment) -> dict[str, Any]:
    """Return an assignment as the JSON of a file."""
    return {
        "version": VERSION,
        "partitions": [
            {"topic": topic, "partition": partition, "replicas": list(replicas)}
            for (topic, partition), replicas in assignment.items()
        ],
    }
