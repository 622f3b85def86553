"""Entry point of the `kafkawire` command.

Every verb is a module of its own, and `--help` imports none of them. Exit codes: 0 success;
1 findings, or undecodable content with `--strict`; 2 usage or unreadable input.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Final

import typer

from . import pipes
from .notes import print_note
from .registry import HELP, Verbs

COMPLETION: Final = "_KAFKAWIRE_COMPLETE"
"""The variable that is set when a shell requests completions."""

app = typer.Typer(
    name="kafkawire",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
    cls=Verbs,
)


def _version(requested: bool) -> None:
    """Show the version and exit (`--version`)."""
    if requested:
        from kafkawire import __version__

        typer.echo(f"kafkawire {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Decode, analyse and speak the Kafka wire protocol."""


def main() -> None:
    """Run the command line."""
    if COMPLETION in os.environ:
        from .completion_words import joined_words

        os.environ.update(joined_words(os.environ))
    pipes.open_closed_streams()
    pipes.prepare_output()
    pipes.tune()
    try:
        with pipes.stop_at_closed_pipe():
            app()
    except OSError as error:  # such as a full disk: the output is incomplete
        pipes.drop_output()
        print_note(f"{error.filename or 'output'}: {error.strerror}")
        sys.exit(2)


if __name__ == "__main__":
    main()
