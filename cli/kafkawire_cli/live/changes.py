"""Says what a verb changes in a cluster, and asks before it deletes.

Without a terminal, nothing is deleted unless `--yes` is given; `--dry-run` changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, NamedTuple

import typer

from kafkawire.display import plural, printable

from ..input.options import Form
from ..input.panels import Panel

YES: Final = "--yes"
DRY_RUN: Final = "--dry-run"
CONFIRMED: Final = ("y", "yes")
PAST: Final = {
    "create": "created",
    "alter": "altered",
    "delete": "deleted",
    "abort": "aborted",
    "cancel": "cancelled",
    "renew": "renewed",
    "expire": "expired",
    "upgrade": "upgraded",
    "downgrade": "downgraded",
}


DryRunOption = Annotated[
    bool,
    typer.Option(
        DRY_RUN, help="Validate and show the changes only.", rich_help_panel=Panel.CHANGES
    ),
]


class ChangeOptions(NamedTuple):
    """Whether to change anything, and whether to ask before something is deleted."""

    yes: Annotated[
        bool,
        typer.Option(
            YES,
            "-y",
            help="Change without confirmation.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False
    dry_run: DryRunOption = False

    def check(self, deleting: str | None, *, changing: bool) -> None:
        """Check that the options fit. deleting: the option that deletes, if there is one.

        A deletion that nobody can confirm is a usage error.
        """
        if self.yes and deleting is None:
            raise typer.BadParameter(
                "only allowed with an option that deletes or aborts, or is confirmed otherwise",
                param_hint=YES,
            )
        if self.dry_run and not changing:
            raise typer.BadParameter("there is nothing to change", param_hint=DRY_RUN)
        if self.yes and self.dry_run:
            raise typer.BadParameter("not allowed together", param_hint=f"{YES}, {DRY_RUN}")
        words = (past for action, past in PAST.items() if action in (deleting or ""))
        past = next(words, PAST["delete"])
        needs_terminal = deleting is not None and not self.yes and not self.dry_run
        if needs_terminal and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise typer.BadParameter(
                f"no terminal to confirm it: add {YES}, or {DRY_RUN} to see what would be {past}",
                param_hint=deleting,
            )

    def confirm(self, what: list[str], action: str = "delete") -> None:
        """Ask whether to delete, or to abort; exit code 1 unless the answer is yes."""
        if self.yes or self.dry_run:
            return
        lines = "".join(f"  {printable(each)}\n" for each in what)
        sys.stderr.write(f"This {action}s\n{lines}Continue? [y/N]: ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in CONFIRMED:
            typer.echo(f"nothing {PAST[action]}", err=True)
            raise typer.Exit(1)


NO_CHANGE_OPTIONS: Final = ChangeOptions()


class Change(NamedTuple):
    """A change of a topic, group, transaction or ACL. action: create, alter, delete or abort.

    partitions: their number, where it is known or changes. configs: those that are set; None for
    the default. offset_of: the partition whose committed offset is deleted, not the group. fields:
    what stands for the name in JSON.
    """

    action: str
    kind: str
    name: str
    partitions: int | None = None
    configs: dict[str, str | None] | None = None
    offset_of: tuple[str, int] | None = None
    fields: dict[str, Any] | None = None

    def text(self, *, dry_run: bool) -> str:
        """Return a line: `created topic orders: 6 partitions`."""
        details = [] if self.partitions is None else [plural(self.partitions, "partition")]
        details += [
            f"{key}: default" if value is None else f"{key}={value}"
            for key, value in (self.configs or {}).items()
        ]
        what = f"{self.kind} {self.name}"
        if self.offset_of is not None:
            what = f"the offset of {what} in {self.offset_of[0]}-{self.offset_of[1]}"
        line = f"would {self.action} {what}" if dry_run else f"{PAST[self.action]} {what}"
        return f"{line}: {', '.join(details)}" if details else line

    def json(self) -> dict[str, Any]:
        """Return the change as an object."""
        name = self.name if self.fields is None else self.fields
        fields: dict[str, Any] = {"action": self.action, self.kind: name}
        if self.partitions is not None:
            fields["partitions"] = self.partitions
        if self.configs:
            fields["configs"] = self.configs
        if self.offset_of is not None:
            fields |= zip(("topic", "partition"), self.offset_of, strict=True)
        return fields


class ChangeReport:
    """Prints changes as they are made, or one JSON object of them in the end."""

    def __init__(self, form: Form, *, dry_run: bool) -> None:
        self._form = form
        self._dry_run = dry_run
        self._changes: list[Change] = []

    def add(self, change: Change) -> None:
        """Report a change that was made, or would be made."""
        self._changes.append(change)
        if self._form is not Form.JSON:
            typer.echo(printable(change.text(dry_run=self._dry_run)))

    @contextmanager
    def printed(self) -> Iterator[None]:
        """Print the JSON object in the end, also of changes before an error."""
        try:
            yield
        finally:
            if self._form is Form.JSON and self._changes:
                changes = [each.json() for each in self._changes]
                print(json.dumps({"dry_run": self._dry_run, "changes": changes}, indent=2))
