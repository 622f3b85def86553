"""`kafkawire codegen`: schemas -> a Python package of codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kafkawire.escaping import printable, printable_lines


def codegen(
    package: Annotated[str, typer.Option(help="Import name of the generated package.")],
    out: Annotated[Path, typer.Option(help="Folder to write it to; made if missing.")],
    schemas: Annotated[
        Path | None,
        typer.Option(
            help="Directory of *.json schemas [default: kafkawire's own]", show_default=False
        ),
    ] = None,
) -> None:
    """Generate codecs from message schemas (ours, yours, or Apache Kafka's own directories).

    \b
    kafkawire codegen --schemas ./schemas --package mine.messages --out src/mine/messages
    kafkawire codegen --package kafka_messages --out ./kafka_messages
    """
    from kafkawire_codegen import generate, is_package_name, schemas_dir
    from kafkawire_codegen.schema import SchemaErrors

    source = schemas_dir() if schemas is None else schemas
    if not source.is_dir():
        raise typer.BadParameter(f"{source} is no directory", param_hint="--schemas")
    if next(source.glob("*.json"), None) is None:
        raise typer.BadParameter(f"{source} holds no schema (*.json)", param_hint="--schemas")
    if not is_package_name(package):
        reason = f"{package!r} is not a valid package name"
        raise typer.BadParameter(reason, param_hint="--package")
    try:
        made = generate(source, out, package)
    except SchemaErrors as errors:
        typer.echo(printable_lines(str(errors)), err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise typer.BadParameter(reason, param_hint="--out") from None
    typer.echo(
        printable(f"{len(made.modules)} messages in {made.out}, {made.changed} files changed")
    )
