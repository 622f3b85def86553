"""Finds errors and advice for a schema file or a directory of them.

The generator rejects `errors`, but not `advice`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from .rules import ADVICE, RULES
from .schema import check_sources
from .source import SchemaError


@dataclass(frozen=True, slots=True)
class Report:
    """The result for a file or directory: number of messages, findings."""

    messages: int
    errors: tuple[SchemaError, ...]
    advice: tuple[SchemaError, ...]

    def text(self) -> str:
        """One line per finding, then the count."""
        lines = [str(error) for error in self.errors]
        lines += [f"{advice} (advice)" for advice in self.advice]
        total = f"{_many(self.messages, 'message')}, {_many(len(self.errors), 'error')}"
        return "\n".join([*lines, f"{total}, {_many(len(self.advice), 'piece')} of advice"])

    def json(self) -> dict[str, object]:
        """The same for a machine."""
        return {
            "messages": self.messages,
            "errors": [asdict(error) for error in self.errors],
            "advice": [asdict(advice) for advice in self.advice],
        }


def lint(path: Path) -> Report:
    """Check a source, such as a directory, with every rule; OSError if it cannot be read."""
    messages, errors_and_advice = check_sources(path)
    errors = tuple(error for error in errors_and_advice if error.rule not in ADVICE)
    advice = tuple(error for error in errors_and_advice if error.rule in ADVICE)
    return Report(len(messages), errors, advice)


def rules_text() -> str:
    """List every rule: its id, its requirement, and whether it is advice."""
    width = max(map(len, RULES))
    return "\n".join(
        f"{id_:{width}}  {demand}{' (advice)' if id_ in ADVICE else ''}"
        for id_, demand in RULES.items()
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
