"""The manifest's entries of inputs, and its JSON.

Neither the entries nor the JSON of all inputs are in memory at once; the JSON is that of
`json.dumps(manifest, indent=1)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..plan.planning import Plan
from ..plan.verdicts import Verdict
from ..splitting import InputFile
from ..splitting.file_list import LazySequence

ENTRIES: Final = 256
"""Entries in a piece of the JSON."""


@dataclass(frozen=True, eq=False)
class InputEntries(LazySequence[dict[str, Any]]):
    """The entries of the inputs of a plan: those that are read, then those that are skipped."""

    plan: Plan

    def __len__(self) -> int:
        return len(self.plan.files) + len(self.plan.skipped)

    def value(self, index: int) -> dict[str, Any]:
        """Make an entry."""
        plan = self.plan
        if index < len(plan.files):
            return entry(plan.files[index], plan.verdicts[index])
        name, verdict, file = plan.skipped[index - len(plan.files)]
        return entry(file, verdict, name)


def entry(file: InputFile | None, verdict: Verdict, name: str = "") -> dict[str, Any]:
    """Return the entry of an input; a missing one has no size."""
    about = {} if file is None else {"bytes": file.size, "modified_ns": file.modified_ns}
    return {"name": name if file is None else file.name, **about, **verdict.as_json()}


def manifest_pieces(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON of a manifest in pieces."""
    start = "{\n "
    for name, value in manifest.items():
        yield f"{start}{json.dumps(name)}: "
        start = ",\n "
        if isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield from _list_pieces(value)
        else:
            yield _indented(value, 1)
    yield "\n}"


def _list_pieces(values: Sequence[Any]) -> Iterator[str]:
    start = "[\n  "
    for first in range(0, len(values), ENTRIES):
        yield start + ",\n  ".join(_indented(each, 2) for each in values[first : first + ENTRIES])
        start = ",\n  "
    yield "\n ]"


def _indented(value: Any, depth: int) -> str:
    return json.dumps(value, indent=1).replace("\n", "\n" + " " * depth)
