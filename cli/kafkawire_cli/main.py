"""The `kafkawire` command: one module a verb, and nothing imported that `--help` does not need.

Exit codes everywhere: 0 ok, 1 findings or undecodable content where asked for, 2 usage.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kafkawire.escaping import printable

from . import pipes
from .registry import HELP, Verbs

app = typer.Typer(
    name="kafkawire",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
    cls=Verbs,
)


def _version(asked: bool) -> None:
    """Print the version alone, where `--version` is given."""
    if asked:
        from kafkawire import __version__

        typer.echo(f"kafkawire {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Say which version this is, and do no more.",
            callback=_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """The Kafka wire protocol: decode captures and bytes, encode, explain, generate codecs."""


def main() -> None:
    """Run the command line."""
    pipes.prepare_output()
    pipes.tune()
    try:
        with pipes.until_the_reader_leaves():
            app()
    except OSError as error:  # a disk that is full: what was asked for is not all there
        pipes.drop_output()
        said = printable(f"kafkawire: {error.filename or 'output'}: {error.strerror}")
        print(said, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
