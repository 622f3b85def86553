"""What is wrong, and what could be better, in a schema file or a directory of them.

Law: `errors` are what the generator refuses; `advice` is what it lets pass.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from .rules import ADVICE, RULES
from .schema import check_directory, check_file
from .source import SchemaError


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome for a file or directory: how many messages were read, what was found."""

    messages: int
    errors: tuple[SchemaError, ...]
    advice: tuple[SchemaError, ...]

    def text(self) -> str:
        """One line a finding, then the count."""
        lines = [str(error) for error in self.errors]
        lines += [f"{advice} (advice)" for advice in self.advice]
        total = f"{_many(self.messages, 'message')}, {_many(len(self.errors), 'error')}"
        return "\n".join([*lines, f"{total}, {len(self.advice)} pieces of advice"])

    def json(self) -> dict[str, object]:
        """The same for a machine."""
        return {
            "messages": self.messages,
            "errors": [asdict(error) for error in self.errors],
            "advice": [asdict(advice) for advice in self.advice],
        }


def lint(path: Path) -> Report:
    """Ask every rule of a schema file, or of a directory; OSError where it cannot be read."""
    if path.is_dir():
        messages, found = check_directory(path)
    else:
        message, found = check_file(path)
        messages = [message] if message else []
    errors = tuple(error for error in found if error.rule not in ADVICE)
    advice = tuple(error for error in found if error.rule in ADVICE)
    return Report(len(messages), errors, advice)


def rules_text() -> str:
    """List every rule: its id, what it demands, and whether it is advice."""
    width = max(map(len, RULES))
    return "\n".join(
        f"{id_:{width}}  {demand}{' (advice)' if id_ in ADVICE else ''}"
        for id_, demand in RULES.items()
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
