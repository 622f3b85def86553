"""`kafkawire conformance`: checks whether a broker behaves as Apache Kafka."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from kafkawire.client.config import read_config
from kafkawire.conformance.behaviour import Feature
from kafkawire.conformance.behaviours import ALL
from kafkawire.conformance.connection import Target
from kafkawire.conformance.run import Outcome, Result, run
from kafkawire.display import plural, printable
from kafkawire.net.admin import ADMIN_KEYS

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.panels import Panel
from ...notes import print_note
from ...render.conformance.page import page
from ...render.conformance.sections import Shape, as_json, json_lines, lines_of, sections
from ...render.report import Section, print_sections

PREFIX: Final = "kafkawire-conformance"


AddressArgument = Annotated[
    str | None,
    typer.Argument(metavar="[HOST:PORT,...]", help="Bootstrap servers, as with -b."),
]
CapturesOption = Annotated[
    Path | None,
    typer.Option(
        "--captures",
        metavar="FOLDER",
        file_okay=False,
        help="Write the packets of each failure into this folder.",
    ),
]


def checked_page(path: Path | None) -> Path | None:
    """Check, before the run, that its page can be written. Raises a usage error."""
    if path is None:
        return None
    if str(path) == "-":
        raise typer.BadParameter("standard output has the results: expected a file")
    if not os.path.isdir(path.parent):
        raise typer.BadParameter(printable(f"{path.parent}: no such directory"))
    return path


PageOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        dir_okay=False,
        callback=checked_page,
        help="Write a page in HTML, too.",
    ),
]


def _print_lines(results: Sequence[Result]) -> None:
    print_sections([Section("", lines=list(lines_of(results)))])
    sys.stdout.flush()


def _print_json_lines(results: Sequence[Result]) -> None:
    for line in json_lines(results):
        print(line, flush=True)


PRINTED_AT_ONCE: Final[dict[Shape, Callable[[Sequence[Result]], None]]] = {
    Shape.TABLE: _print_lines,
    Shape.JSON: lambda _: None,
    Shape.JSONL: _print_json_lines,
}
"""Format -> prints the results of a behaviour as soon as all its versions are checked."""


def cluster_of(address: str | None, options: ClusterOptions) -> live.Configuration:
    """Return the configuration of a client, whose bootstrap servers may be an argument."""
    if address is not None and options.bootstrap is not None:
        raise typer.BadParameter("not allowed together with HOST:PORT", param_hint=live.CLUSTER)
    return live.admin_configuration(
        options if address is None else options._replace(bootstrap=address)
    )


def conformance(
    address: AddressArgument = None,
    options: ClusterOptions = NO_OPTIONS,
    feature: Annotated[
        list[Feature] | None,
        typer.Option(help="Only behaviours of this feature; repeatable.", show_default=False),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Prefix of the topics, groups and transactional ids.")
    ] = PREFIX,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds until a response is overdue.")
    ] = 15.0,
    captures: CapturesOption = None,
    output: PageOption = None,
    shape: Annotated[
        Shape,
        typer.Option(
            "--format",
            "-f",
            help="Output format; jsonl: a line for each check.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = Shape.TABLE,
) -> None:
    """Check whether a broker behaves as Apache Kafka.

    Every behaviour is checked in each version of its API that the broker offers. Topics, groups and
    transactional ids of the checks begin with the prefix; they are deleted afterwards. The
    line of a behaviour is written when its versions are checked.

    \b
    kafkawire conformance localhost:9092
    kafkawire conformance localhost:9092 --feature transactions --captures failures/
    kafkawire conformance localhost:9092 -o conformance.html
    kafkawire conformance localhost:9092 -f jsonl | jq 'select(.outcome == "failed")'

    Exit code 0: no check failed; 1: checks failed, or the broker cannot be reached; 2: usage error.
    """
    client = cluster_of(address, options)
    chosen = [each for each in ALL if each.feature in (feature or Feature)]
    if captures is not None:
        captures.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:  # names what hinders a connection
            await admin.describe_cluster()
        target = Target(read_config(ADMIN_KEYS, client.values), timeout)
        names = f"{prefix}-{secrets.token_hex(4)}"
        results.extend(await run(target, chosen, names, captures, PRINTED_AT_ONCE[shape]))

    live.run(work, client)
    if shape is Shape.TABLE:
        print()
        print_sections(sections(results))
    elif shape is Shape.JSON:
        print(json.dumps(as_json(results), indent=2))
    if output is not None:
        output.write_text(page(results), "utf-8")
    left = [each for one in results for each in one.left]
    if left:
        note = printable(f"{plural(len(left), 'name')} could not be deleted: {', '.join(left)}")
        print_note(str(note))
    if any(each.outcome is Outcome.FAILED for each in results):
        raise typer.Exit(1)
