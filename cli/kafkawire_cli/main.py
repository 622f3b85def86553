"""The `kafkawire` command: one module a verb, and nothing imported that `--help` does not need.

Exit codes everywhere: 0 ok, 1 findings or undecodable content where asked for, 2 usage.
"""

from __future__ import annotations

import sys

import typer

from . import codegen, decode, encode, explain, log, pipes, schema_verbs, version

app = typer.Typer(
    name="kafkawire",
    help="The Kafka wire protocol: decode captures and bytes, encode, explain, generate codecs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("decode")(decode.decode)
app.command("encode")(encode.encode)
app.command("explain")(explain.explain)
app.command("log")(log.log)
app.add_typer(schema_verbs.app, name="schema")
app.command("codegen")(codegen.codegen)
app.command("version")(version.version)


def main() -> None:
    """Run the command line; text that the terminal cannot show is escaped, not an error."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except OSError as error:  # a disk that is full: what was asked for is not all there
        pipes.drop_output()
        print(f"kafkawire: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
