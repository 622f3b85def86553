"""`kafkawire schema lint|show|diff|merge|coverage`: checks, compares and merges schemas.

Exit code 1 for findings, 2 for usage errors; colour only on a terminal.
"""

from __future__ import annotations

import json
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.display import printable_lines

from ...input.names import complete_message, complete_release, suggestion
from ...input.schema_sources import existing, load, readable, releases_of, sides
from ...verb_command import VerbCommand
from .schema_merge import merge

if TYPE_CHECKING:
    from kafkawire_codegen.dialect import MessageSchema

app = typer.Typer(
    help="Lint, show, compare and merge message schemas.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SchemasOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--schemas",
        metavar="SOURCE",
        help="Directory, jar or ZIP archive of schemas; again: later ones override messages "
        "[default: those of kafkawire].",
        show_default=False,
    ),
]


class DiffFormat(Enum):
    """What `diff` prints."""

    TEXT = "text"
    JSON = "json"


ReleasesOption = Annotated[
    Path | None,
    typer.Option(
        "--releases",
        metavar="FILE",
        help="File of releases [default: releases.json of kafkawire].",
        show_default=False,
    ),
]


@app.command("lint", cls=VerbCommand, short_help="Check schemas against the rules.")
def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Directories, jars, ZIP archives or files [default: schemas of kafkawire].",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat advice as findings.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List all rules and exit.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check schemas; print file:line:column, path, reason and rule of each finding.

    \b
    kafkawire schema lint
    kafkawire schema lint clients/src/main/resources/common/message
    kafkawire schema lint --strict MyRequest.json MyResponse.json
    """
    from kafkawire_codegen import lint as linting
    from kafkawire_codegen import schemas_dir

    if rules:
        typer.echo(linting.rules_text())
        return
    with readable():
        reports = {str(path): linting.lint(path) for path in paths or [schemas_dir()]}
    for path, report in reports.items():
        if not report.messages and not report.errors:
            raise typer.BadParameter(f"{path}: no schemas (*.json)", param_hint="PATH...")
    if as_json:
        _json({path: report.json() for path, report in reports.items()})
    else:
        for report in reports.values():
            _print(report.text())
    if any(report.errors or (strict and report.advice) for report in reports.values()):
        raise typer.Exit(1)


@app.command("show", cls=VerbCommand, short_help="Show the fields of a message by version.")
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Message, API (both directions), or schema file.",
            autocompletion=complete_message,
        ),
    ],
    schemas: SchemasOption = None,
    each: Annotated[
        bool, typer.Option("--each", help="Show a column per version, not per change.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the fields of a message by version: ● present, ? nullable, #N tagged, · absent.

    \b
    kafkawire schema show FetchRequest
    kafkawire schema show Fetch --each
    kafkawire schema show ./MyRequest.json --json
    """
    from kafkawire_codegen.schema import load_file
    from kafkawire_codegen.show import show as table_of

    with readable():
        if name.endswith(".json"):
            found = [load_file(Path(name))]
        else:
            found = _named(name, load(existing(schemas)))
        tables = [table_of(schema, each=each) for schema in found]
    if as_json:
        _json([table.json() for table in tables])
    else:
        _print("\n\n".join(table.text() for table in tables))


@app.command("diff", cls=VerbCommand, short_help="Compare two directories, jars or releases.")
def diff(
    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE", help="Directory, jar or ZIP archive of schemas, or Kafka release."
        ),
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The newer one.")],
    schemas: SchemasOption = None,
    releases: ReleasesOption = None,
    format_: Annotated[
        DiffFormat, typer.Option("--format", help="Output format.")
    ] = DiffFormat.TEXT,
    as_json: AsJson = False,
) -> None:
    """Compare two sources or releases, and check the rules of schema evolution.

    \b
    kafkawire schema diff schemas.old schemas
    kafkawire schema diff kafka-clients-4.3.1.jar kafka-clients-4.4.0.jar
    kafkawire schema diff 3.9 4.0
    kafkawire schema diff 4.0 ./ours --format json

    A release has the requests and responses of --schemas in its versions; with
    a release, other messages of the other side are not compared. The exit code
    is 1 if a released version changed in a way that breaks a rule of evolution:
    CI can compare the released schemas with those of a change.
    """
    from kafkawire_codegen.evolution import compare

    with readable():
        evolution = compare(*sides(before, after, schemas, releases))
    if as_json or format_ is DiffFormat.JSON:
        _json(evolution.json())
    else:
        _print(evolution.text())
    if evolution.breaches:
        raise typer.Exit(1)


app.command("merge", cls=VerbCommand, short_help="Merge releases into one timeline.")(merge)


@app.command("coverage", cls=VerbCommand, short_help="Show which APIs of a release are covered.")
def coverage(
    release: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RELEASE...",
            help="Kafka releases [default: all].",
            show_default=False,
            autocompletion=complete_release,
        ),
    ] = None,
    schemas: SchemasOption = None,
    releases: ReleasesOption = None,
    as_json: AsJson = False,
) -> None:
    """Show which APIs and versions of a Kafka release the schemas cover.

    \b
    kafkawire schema coverage 4.1
    kafkawire schema coverage --schemas my/schemas
    """
    from kafkawire_codegen.releases import coverage as coverage_of

    with readable():
        table, loaded = releases_of(schemas, releases), load(existing(schemas))
        covered = [coverage_of(name, table, loaded) for name in release or table.ranges]
    if as_json:
        _json([one.json() for one in covered])
    elif release:
        _print("\n".join(one.text() for one in covered))
    else:
        _print("\n".join(one.summary() for one in covered))
    if not all(one.complete for one in covered):
        raise typer.Exit(1)


def _named(name: str, loaded: list[MessageSchema]) -> list[MessageSchema]:
    """Find a message, or both messages of an API, ignoring case; the usage error suggests names."""
    from kafkawire_codegen.naming import api_name

    wanted = name.replace("_", "").lower()
    found = [schema for schema in loaded if schema.name.lower() == wanted]
    found = found or [schema for schema in loaded if api_name(schema.name).lower() == wanted]
    if not found:
        known = [schema.name for schema in loaded] + [api_name(schema.name) for schema in loaded]
        hint = suggestion(wanted, known)
        raise typer.BadParameter(f"unknown message {name!r}{hint}", param_hint="NAME")
    return sorted(found, key=lambda schema: schema.type)


def _json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))


COLOURS: Final = {"+ ": "green", "- ": "red", "~ ": "yellow"}
"""Prefix of a line of a diff -> its colour."""


def _print(text: str) -> None:
    """Print text; on a terminal in colour and without wrapping."""
    text = printable_lines(text)
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, emoji=False, highlight=False)
    for line in text.split("\n"):
        coloured = Text(line, style=COLOURS.get(line.lstrip()[:2], ""))
        coloured.highlight_regex(r"^\S+?:\d+:\d+:", "bold")
        coloured.highlight_regex(r"\[[a-z-]+\]( \(advice\))?$", "magenta")
        coloured.highlight_regex("·", "dim")
        console.print(coloured, soft_wrap=True)
