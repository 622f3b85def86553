"""`kafkawire codegen`: generates a Python package, or another target, from schemas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from kafkawire.display import plural, printable, printable_lines

PYTHON: Final = "python"
"""The default target: a package of codecs."""


def _targets(incomplete: str) -> list[str]:
    """Complete the name of a target."""
    from kafkawire_codegen.targets import TARGETS

    return [name for name in (PYTHON, *TARGETS) if name.startswith(incomplete)]


def codegen(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output directory; created if missing.")],
    package: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Import name of the generated package; required for python.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="NAME", help="What to generate.", autocompletion=_targets)
    ] = PYTHON,
    schemas: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of *.json schemas [default: those of kafkawire].",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Generate a Python package of codecs, or another target, from message schemas.

    \b
    kafkawire codegen --schemas ./schemas --package mine.messages --out src/mine/messages
    kafkawire codegen --package kafka_messages --out ./kafka_messages

    Schemas are in the format of Apache Kafka's own message directories.
    """
    from kafkawire_codegen import schemas_dir

    source = schemas_dir() if schemas is None else schemas
    if not source.is_dir():
        raise typer.BadParameter(f"{source}: not a directory", param_hint="--schemas")
    if next(source.glob("*.json"), None) is None:
        raise typer.BadParameter(
            f"{source}: no schemas (*.json) in this directory", param_hint="--schemas"
        )
    write = _python if target == PYTHON else _other
    typer.echo(printable(_generated(write, source, out, package, target)))


Writer = Callable[[Path, Path, str | None, str], str]
"""Schemas, output directory, package and target -> a line about the result."""


def _generated(write: Writer, source: Path, out: Path, package: str | None, target: str) -> str:
    """Write the output of a target; errors of the schemas and the folder end the command."""
    from kafkawire_codegen.schema import SchemaErrors

    try:
        return write(source, out, package, target)
    except SchemaErrors as errors:
        typer.echo(printable_lines(str(errors)), err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise typer.BadParameter(reason, param_hint="--out") from None


def _python(source: Path, out: Path, package: str | None, target: str) -> str:
    from kafkawire_codegen import generate, is_package_name

    if package is None:
        raise typer.BadParameter(f"required for the target {target}", param_hint="--package")
    if not is_package_name(package):
        reason = f"invalid package name {package!r}"
        raise typer.BadParameter(reason, param_hint="--package")
    made = generate(source, out, package)
    return (
        f"{plural(len(made.modules), 'message')} in {made.out}, "
        f"{plural(made.changed, 'file')} changed"
    )


def _other(source: Path, out: Path, package: str | None, target: str) -> str:
    from kafkawire_codegen.targets import InvalidName, generate_target

    try:
        made = generate_target(target, source, out, package)
    except LookupError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--target") from None
    except InvalidName as error:
        raise typer.BadParameter(str(error), param_hint="--package") from None
    return (
        f"{plural(made.messages, 'message')}, {plural(made.files, 'file')} in {made.out}, "
        f"{plural(made.changed, 'file')} changed"
    )
