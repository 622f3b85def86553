"""What a manifest says of a job: inputs, tables, files, options, and an account of the bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..capture.losses import Losses, lack
from ..values.record_values import RecordValues
from .options import Options
from .plan.facts import AllFacts
from .plan.planning import Plan
from .plan.verdicts import PROBLEMS, REFUSED, FileStatus, code
from .write.manifest import InputEntries
from .write.output_directory import OutputFile


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written."""

    table: str
    files: Sequence[OutputFile]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.rows for file in self.files)


def describe(
    plan: Plan,
    options: Options,
    written: Iterable[Written],
    facts: AllFacts | None,
    values: RecordValues | None = None,
) -> dict[str, Any]:
    """Return the manifest."""
    manifest: dict[str, Any] = {
        "kafkawire": __version__,
        "inputs": InputEntries(plan),
        "sets": len(set(plan.sets)),
        "splits": len(plan.parts),
        "tables": {one.table: {"rows": one.rows} for one in written},
        "files": [file.as_json() for one in written for file in one.files],
        "options": _options_json(options, values),
    }
    if facts is not None:
        manifest["payload"] = account(facts.sums)
        manifest["messages"] = facts.sums["messages"]
        manifest["connections"] = facts.sums["connections"]
    return manifest


def losses_text(tables: Iterable[str], options: Options, sums: Mapping[str, int]) -> str:
    """Say how much tables lack because the captures lack it; "" for nothing, or only some rows.

    Which of it a filter would have taken is not known.
    """
    filters = (options.where, options.apis, options.topics, options.start_ns, options.end_ns)
    if any(filters) or not lack(tables):
        return ""
    losses = Losses(sums.get("cut_messages", 0), sums.get("gap_bytes", 0))
    return losses.text("the tables lack")


def exit_code(manifest: Mapping[str, Any], *, strict: bool) -> int:
    """Return the exit code of a run, as `kafkawire decode` does.

    It is 2 if an input was refused; with strict 1 if there are rows of `problems`.
    """
    refused = any(FileStatus(each["status"]) in REFUSED for each in manifest["inputs"])
    return code(refused=refused, findings=strict and manifest["tables"][PROBLEMS]["rows"] > 0)


def account(sums: Mapping[str, int]) -> dict[str, int]:
    """Account for the captured payload bytes.

    `missing` counts bytes that were never captured, and `unaccounted` is 0.
    """
    by_kind = {
        name: sums.get(f"{kind}_bytes", 0)
        for name, kind in (
            ("messages", "message"),
            ("cut_messages", "truncated"),
            ("unparsed", "unparsed"),
            ("tls", "tls"),
            ("proxy", "proxy"),
            ("other_protocols", "other_protocol"),
            ("discarded", "discarded"),
            ("conflicting", "conflict"),
            ("repeated", "repeated"),
        )
    }
    captured = sums.get("captured_bytes", 0)
    missing = sums.get("gap_bytes", 0)
    accounted = captured - sum(by_kind.values())
    return {"captured": captured, **by_kind, "missing": missing, "unaccounted": accounted}


def _options_json(options: Options, values: RecordValues | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "ports": list(options.ports),
        "brokers": list(options.brokers),
        "apis": sorted(options.apis),
        "topics": sorted(options.topics),
        "where": options.where,
        "startTs": options.start_ns,
        "endTs": options.end_ns,
        "sets": options.sets.value,
        "redact": options.redact,
        "values": values and values.values and values.values.format.value,
        "keys": values and values.keys and values.keys.format.value,
    }
    return {name: value for name, value in shown.items() if value not in (None, [])}
