"""The verbs, by name: what each is for, and the module that is imported when it is called.

Law: the list of verbs is told without importing any; what a verb's own `--help` says and takes is
said in its module alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kafkawire.escaping import printable


class Verb(NamedTuple):
    """A verb: the module and the function in it, or the app of its own verbs; what it is for."""

    module: str
    attribute: str
    says: str


VERBS: Final = {
    "decode": Verb(
        "decode", "decode", "Decode every Kafka message in captures, frames or hex text."
    ),
    "summary": Verb("summary", "summary", "Say what is in captures, at a glance."),
    "latency": Verb("latency", "latency", "Show calls by API: counts, errors, latency."),
    "topics": Verb("topics", "topics", "Show topics of captures: records, bytes, codecs, by whom."),
    "clients": Verb("clients", "clients", "Show clients: software, address, calls."),
    "groups": Verb(
        "groups",
        "groups",
        "Show consumer groups: members, rebalances and their causes, lag.",
    ),
    "readiness": Verb("readiness", "readiness", "Find clients that a Kafka release would refuse."),
    "encode": Verb(
        "encode",
        "encode",
        "Encode a message given in Kafka's JSON form; fields left out take their defaults.",
    ),
    "explain": Verb(
        "explain", "explain", "Explain a message body, or a whole frame, byte by byte."
    ),
    "log": Verb("log", "log", "Read and verify the files of a broker's log directory."),
    "serve": Verb(
        "serve",
        "serve",
        "Run brokers for clients to talk to, until interrupted; all they hold is in memory.",
    ),
    "produce": Verb(
        "produce",
        "produce",
        "Send each line of the input as a record; tell how many were delivered.",
    ),
    "consume": Verb(
        "consume", "consume", "Print the records of topics as they come, until interrupted."
    ),
    "schema": Verb("schema", "app", "Schemas: lint, show by version, diff, coverage of a release."),
    "spark": Verb(
        "spark", "spark", "Decode captures of any size into Parquet tables, by Apache Spark."
    ),
    "codegen": Verb(
        "codegen",
        "codegen",
        "Generate codecs from message schemas (ours, yours, or Apache Kafka's own directories).",
    ),
    "version": Verb(
        "version", "version", "Print the version, the Python, and whether the codecs are compiled."
    ),
}

CLICK_ERROR: Final[Any] = next(
    one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException"
)
"""What all usage errors are: of `click`, or of the copy of it that newer releases of Typer have."""

HELP: Final = {"help_option_names": ["-h", "--help"]}


@contextmanager
def _escaped_usage_errors() -> Iterator[None]:
    """Escape the messages of usage errors: they repeat names of files, values, what files say."""
    try:
        yield
    except CLICK_ERROR as error:
        error.message = printable(error.message)
        raise


class Verbs(TyperGroup):
    """The group of them. What is listed and completed are stand-ins that have a name and a text;
    the command itself takes its place when it is resolved.
    """

    def __init__(self, **settings: Any) -> None:  # whatever Typer hands over
        super().__init__(**settings)
        for name, verb in VERBS.items():
            self.add_command(TyperCommand(name, help=verb.says))

    def make_context(self, *given: Any, **settings: Any) -> Any:
        """Parse the arguments; what a usage error repeats of them is escaped."""
        with _escaped_usage_errors():
            return super().make_context(*given, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; what a usage error repeats of its input is escaped."""
        with _escaped_usage_errors():
            return super().invoke(ctx)

    def resolve_command(
        self,
        ctx: Any,  # a Context; from where, depends on the release of Typer
        args: list[str],
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        """Find the command that the first argument names, and import it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else command(name), rest


def command(name: str) -> TyperCommand | TyperGroup:
    """Make the command of a verb."""
    verb = VERBS[name]
    found = getattr(import_module(f".verbs.{verb.module}", __package__), verb.attribute)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings=HELP)
        app.command(name)(found)
        found = app
    made = get_command(found)
    assert isinstance(made, TyperCommand | TyperGroup)
    made.name = name
    return made
