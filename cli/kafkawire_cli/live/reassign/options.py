"""Options of `kafkawire reassign`: what is done, with which partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from ...input.panels import Panel
from ..completion import complete_topic
from ..unknown_names import broker_ids
from .files import Partition, read_assignment, read_topics

GENERATE: Final = "--generate"
EXECUTE: Final = "--execute"
VERIFY: Final = "--verify"
CANCEL: Final = "--cancel"
FILE: Final = "--reassignment-json-file"
TOPICS_FILE: Final = "--topics-to-move-json-file"
TO: Final = "--to"
THROTTLE: Final = "--throttle"
PRESERVE: Final = "--preserve-throttles"


class Actions(NamedTuple):
    """What is done; without any, reassignments in progress are shown."""

    generate: Annotated[
        bool,
        typer.Option(
            GENERATE,
            help=f"Propose replicas of topics on the brokers {TO}.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False
    execute: Annotated[
        bool,
        typer.Option(
            EXECUTE,
            help="Move replicas, as proposed or as in a file.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False
    verify: Annotated[
        bool,
        typer.Option(
            VERIFY,
            help="Show whether the replicas are as in a file, or the topics settled.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False
    cancel: Annotated[
        bool,
        typer.Option(
            CANCEL,
            help="Cancel what is in progress, of a file or of topics.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False

    @property
    def chosen(self) -> str | None:
        """The option of the action; several are a usage error."""
        options = zip((GENERATE, EXECUTE, VERIFY, CANCEL), self, strict=True)
        chosen = [option for option, value in options if value]
        if len(chosen) > 1:
            raise typer.BadParameter("not allowed together", param_hint=", ".join(chosen))
        return chosen[0] if chosen else None


class Moves(NamedTuple):
    """Which partitions, and where their replicas shall be."""

    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Of this topic; repeatable.", autocompletion=complete_topic
        ),
    ] = None
    topics_file: Annotated[
        Path | None,
        typer.Option(
            TOPICS_FILE, metavar="FILE", help="Of the topics in this file, - for standard input."
        ),
    ] = None
    to: Annotated[
        str | None,
        typer.Option(
            TO,
            "--broker-list",
            metavar="ID,...",
            help=f"With {GENERATE}, {EXECUTE}: brokers for the replicas.",
        ),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option(
            FILE,
            metavar="FILE",
            help=f"With {EXECUTE}, {VERIFY}, {CANCEL}: partitions, - for standard input.",
        ),
    ] = None
    additional: Annotated[
        bool,
        typer.Option(
            "--additional", help=f"With {EXECUTE}: also change what is being reassigned already."
        ),
    ] = False

    def brokers(self) -> list[int] | None:
        """Return the ids of the brokers, if they are named. Others than ids are a usage error."""
        if self.to is None:
            return None
        return broker_ids((word.strip() for word in self.to.split(",")), TO)

    def topics(self) -> list[str]:
        """Return the topics that are named, and those of the file."""
        of_file = [] if self.topics_file is None else read_topics(self.topics_file, TOPICS_FILE)
        return list(dict.fromkeys([*(self.topic or ()), *of_file]))


class Throttling(NamedTuple):
    """How fast brokers replicate what is moved."""

    throttle: Annotated[
        int | None,
        typer.Option(
            THROTTLE,
            metavar="BYTES",
            min=1,
            help=f"With {EXECUTE}: bytes per second that each broker sends, and receives, of what "
            "is moved [default: no limit].",
            show_default=False,
        ),
    ] = None
    preserve: Annotated[
        bool,
        typer.Option(
            PRESERVE,
            help=f"With {VERIFY}, {CANCEL}: do not remove throttles once nothing is in progress.",
        ),
    ] = False


NO_ACTION: Final = Actions()
NO_THROTTLING: Final = Throttling()
ALL_MOVES: Final = Moves()


class Wanted(NamedTuple):
    """The options, checked. assignment: of the file, None without one."""

    action: str | None
    topics: list[str]
    brokers: list[int] | None
    assignment: dict[Partition, list[int]] | None
    additional: bool
    throttle: int | None
    preserves_throttles: bool


def checked(actions: Actions, moves: Moves, throttling: Throttling) -> Wanted:
    """Check that the options fit together, and read the files."""
    action = actions.chosen
    if throttling.throttle is not None and action != EXECUTE:
        raise typer.BadParameter(f"only allowed with {EXECUTE}", param_hint=THROTTLE)
    if throttling.preserve and action not in (VERIFY, CANCEL):
        raise typer.BadParameter(f"only allowed with {VERIFY} or {CANCEL}", param_hint=PRESERVE)
    brokers = moves.brokers()
    topics = moves.topics()
    places = action in (GENERATE, EXECUTE)
    if brokers is not None and not places:
        raise typer.BadParameter(f"only allowed with {GENERATE} or {EXECUTE}", param_hint=TO)
    if moves.additional and action != EXECUTE:
        raise typer.BadParameter(f"only allowed with {EXECUTE}", param_hint="--additional")
    if moves.file is not None and action in (None, GENERATE):
        hint = f"only allowed with {EXECUTE}, {VERIFY} or {CANCEL}"
        raise typer.BadParameter(hint, param_hint=FILE)
    if moves.file is not None and (topics or brokers):
        raise typer.BadParameter(f"not allowed together with --topic, {TO}", param_hint=FILE)
    if moves.file is None and action is not None and not topics:
        raise typer.BadParameter(f"expected topics or a file with {action}", param_hint="--topic")
    if moves.file is None and places and brokers is None:
        raise typer.BadParameter(f"needed with {action} and topics", param_hint=TO)
    assignment = None if moves.file is None else read_assignment(moves.file, FILE)
    return Wanted(action, topics, brokers, assignment, moves.additional, *throttling)
