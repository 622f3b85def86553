"""The `kafkawire` command: one module a verb, and nothing imported that `--help` does not need.

Exit codes everywhere: 0 ok, 1 findings or undecodable content where asked for, 2 usage.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from . import (
    clients,
    codegen,
    consume,
    decode,
    encode,
    explain,
    latency,
    live_groups,
    log,
    pipes,
    produce,
    readiness,
    schema_verbs,
    serve,
    spark,
    summary,
    topics_verb,
    version,
)

app = typer.Typer(
    name="kafkawire",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("decode")(decode.decode)
app.command("summary")(summary.summary)
app.command("latency")(latency.latency)
app.command("topics")(topics_verb.topics)
app.command("clients")(clients.clients)
app.command("groups")(live_groups.groups)
app.command("readiness")(readiness.readiness)
app.command("encode")(encode.encode)
app.command("explain")(explain.explain)
app.command("log")(log.log)
app.command("serve")(serve.serve)
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.add_typer(schema_verbs.app, name="schema")
app.command("spark")(spark.spark)
app.command("codegen")(codegen.codegen)
app.command("version")(version.version)


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Say which version this is, and do no more.",
            callback=version.when_asked,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """The Kafka wire protocol: decode captures and bytes, encode, explain, generate codecs."""


def main() -> None:
    """Run the command line; text that the terminal cannot show is escaped, not an error."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    pipes.tune()
    try:
        with pipes.until_the_reader_leaves():
            app()
    except OSError as error:  # a disk that is full: what was asked for is not all there
        pipes.drop_output()
        print(f"kafkawire: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
