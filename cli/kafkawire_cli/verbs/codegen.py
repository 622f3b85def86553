"""`kafkawire codegen`: generates a Python package of codecs from schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kafkawire.display import plural, printable, printable_lines


def codegen(
    package: Annotated[
        str, typer.Option(metavar="NAME", help="Import name of the generated package.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output directory; created if missing.")],
    schemas: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of *.json schemas [default: those of kafkawire].",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Generate a Python package of codecs from message schemas.

    \b
    kafkawire codegen --schemas ./schemas --package mine.messages --out src/mine/messages
    kafkawire codegen --package kafka_messages --out ./kafka_messages

    Schemas are in the format of Apache Kafka's own message directories.
    """
    from kafkawire_codegen import generate, is_package_name, schemas_dir
    from kafkawire_codegen.schema import SchemaErrors

    source = schemas_dir() if schemas is None else schemas
    if not source.is_dir():
        raise typer.BadParameter(f"{source}: not a directory", param_hint="--schemas")
    if next(source.glob("*.json"), None) is None:
        raise typer.BadParameter(
            f"{source}: no schemas (*.json) in this directory", param_hint="--schemas"
        )
    if not is_package_name(package):
        reason = f"invalid package name {package!r}"
        raise typer.BadParameter(reason, param_hint="--package")
    try:
        generated = generate(source, out, package)
    except SchemaErrors as errors:
        typer.echo(printable_lines(str(errors)), err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise typer.BadParameter(reason, param_hint="--out") from None
    typer.echo(
        printable(
            f"{plural(len(generated.modules), 'message')} in {generated.out}, "
            f"{plural(generated.changed, 'file')} changed"
        )
    )
