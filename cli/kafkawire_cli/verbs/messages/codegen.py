"""`kafkawire codegen`: generates a Python package, or another target, from schemas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.display import plural, printable, printable_lines

from ...input.schema_sources import existing

if TYPE_CHECKING:
    from kafkawire_codegen.targets import GeneratedFiles

PYTHON: Final = "python"
"""The default target: a package of codecs."""


def _targets(incomplete: str) -> list[str]:
    """Complete the name of a target."""
    from kafkawire_codegen.targets import TARGETS

    return [name for name in (PYTHON, *TARGETS) if name.startswith(incomplete)]


def _list_targets(wanted: bool) -> None:
    """Print each target and what it writes, and end the command."""
    if not wanted:
        return
    from kafkawire_codegen.targets import TARGETS

    targets = {PYTHON: "a package of codecs, on the runtime of kafkawire"} | dict(TARGETS)
    width = max(map(len, targets))
    for name, written in sorted(targets.items()):
        typer.echo(f"{name:{width}}  {written}")
    raise typer.Exit


def codegen(
    out: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Output directory; created if missing."),
    ],
    package: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the generated package or site; required for python.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="NAME", help="What to generate.", autocompletion=_targets)
    ] = PYTHON,
    schemas: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="SOURCE",
            help="Directory, jar or ZIP archive of schemas; again: later ones override "
            "messages [default: those of kafkawire].",
            show_default=False,
        ),
    ] = None,
    templates: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of Jinja2 templates (*.j2) to fill, instead of --target.",
            show_default=False,
        ),
    ] = None,
    list_targets: Annotated[  # noqa: ARG001 - its callback does it
        bool,
        typer.Option(
            "--list-targets", callback=_list_targets, is_eager=True, help="List targets and exit."
        ),
    ] = False,
) -> None:
    """Generate codecs and more from message schemas.

    \b
    kafkawire codegen --schemas schemas --package my.messages --output my/messages
    kafkawire codegen --package kafka_messages --output ./kafka_messages
    kafkawire codegen --schemas kafka-clients-4.4.0.jar --schemas ./ours ...
    kafkawire codegen --target site --output ./reference
    kafkawire codegen --templates ./templates --output ./generated

    Schemas are in the format of Apache Kafka's own message directories and jars.
    """
    sources = existing(schemas)
    write: Writer = _python if target == PYTHON else _other
    if templates is not None:
        write = _templates(templates, target)
    typer.echo(printable(_generated(write, sources, out, package, target)))


Writer = Callable[[tuple[Path, ...], Path, str | None, str], str]
"""Sources, output directory, package and target -> a line about the result."""


def _generated(
    write: Writer, sources: tuple[Path, ...], out: Path, package: str | None, target: str
) -> str:
    """Write the output of a target; errors of the schemas and the folder end the command."""
    from kafkawire_codegen.files import UnreadableArchive
    from kafkawire_codegen.schema import SchemaErrors
    from kafkawire_codegen.user_templates.faults import TemplateErrors

    try:
        return write(sources, out, package, target)
    except (SchemaErrors, TemplateErrors) as errors:
        typer.echo(printable_lines(str(errors)), err=True)
        raise typer.Exit(1) from None
    except UnreadableArchive as error:
        reason = f"{error.filename}: {error.strerror}"
        raise typer.BadParameter(printable(reason), param_hint="--schemas") from None
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise typer.BadParameter(reason, param_hint="--output") from None


def _python(sources: tuple[Path, ...], out: Path, package: str | None, target: str) -> str:
    from kafkawire_codegen import generate, is_package_name

    if package is None:
        raise typer.BadParameter(f"required for the target {target}", param_hint="--package")
    if not is_package_name(package):
        reason = f"invalid package name {package!r}"
        raise typer.BadParameter(reason, param_hint="--package")
    made = generate(sources, out, package)
    return (
        f"{plural(len(made.modules), 'message')} in {made.out}, "
        f"{plural(made.changed, 'file')} changed"
    )


def _other(sources: tuple[Path, ...], out: Path, package: str | None, target: str) -> str:
    from kafkawire_codegen.targets import InvalidName, generate_target

    from ...input.protocol_facts import protocol_facts

    try:
        made = generate_target(target, sources, out, package, protocol_facts(sources))
    except LookupError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--target") from None
    except InvalidName as error:
        raise typer.BadParameter(str(error), param_hint="--package") from None
    return _line(made)


def _templates(templates: Path, target: str) -> Writer:
    """Make the writer that fills templates."""
    if target != PYTHON:
        raise typer.BadParameter("not allowed with --target", param_hint="--templates")
    if not templates.is_dir():
        raise typer.BadParameter(f"{templates}: not a directory", param_hint="--templates")

    def write(sources: tuple[Path, ...], out: Path, package: str | None, _: str) -> str:
        from kafkawire_codegen.user_templates import NAME, generate_templates

        try:
            return _line(generate_templates(sources, templates, out, name=package or NAME))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--templates") from None

    return write


def _line(made: GeneratedFiles) -> str:
    return (
        f"{plural(made.messages, 'message')}, {plural(made.files, 'file')} in {made.out}, "
        f"{plural(made.changed, 'file')} changed"
    )
