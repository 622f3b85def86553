"""`kafkawire codegen`: generates a Python package, or another target, from schemas."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, NoReturn

import typer

from kafkawire.display import plural, printable, printable_lines

from ...input.schema_sources import existing

if TYPE_CHECKING:
    from kafkawire_codegen import GeneratedPackage
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
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Write nothing; list the files that would change, with exit code 1."
        ),
    ] = False,
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
    kafkawire codegen --check --package my.messages --output my/messages

    Schemas are in the format of Apache Kafka's own message directories and jars.
    """
    sources = existing(schemas)
    write: Writer = _python if target == PYTHON else _other
    if templates is not None:
        write = _templates(templates, target)
    made = _generated(write, sources, Output(out, check), package, target)
    if check and made.changed:
        _differing(made)
    typer.echo(printable(_line(made)))


class Output(NamedTuple):
    """The output directory. check: nothing is written there."""

    folder: Path
    check: bool


Writer = Callable[[tuple[Path, ...], Output, str | None, str], "GeneratedFiles | GeneratedPackage"]
"""Sources, output, package and target -> the result."""


def _differing(made: GeneratedFiles | GeneratedPackage) -> NoReturn:
    """List the files that would change, and end the command."""
    for path in made.changed_files:
        typer.echo(printable(path))
    count = plural(made.changed, "file")
    typer.echo(printable(f"{count} would change in {made.out}"), err=True)
    raise typer.Exit(1)


def _generated(
    write: Writer, sources: tuple[Path, ...], out: Output, package: str | None, target: str
) -> GeneratedFiles | GeneratedPackage:
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


def _python(
    sources: tuple[Path, ...], out: Output, package: str | None, target: str
) -> GeneratedPackage:
    from kafkawire_codegen import generate, is_package_name

    if package is None:
        raise typer.BadParameter(f"required for the target {target}", param_hint="--package")
    if not is_package_name(package):
        reason = f"invalid package name {package!r}"
        raise typer.BadParameter(reason, param_hint="--package")
    return generate(sources, out.folder, package, check=out.check)


def _other(
    sources: tuple[Path, ...], out: Output, package: str | None, target: str
) -> GeneratedFiles:
    from kafkawire_codegen.targets import InvalidName, generate_target

    from ...input.protocol_facts import protocol_facts

    facts = protocol_facts(sources)
    try:
        return generate_target(target, sources, out.folder, package, facts, check=out.check)
    except LookupError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--target") from None
    except InvalidName as error:
        raise typer.BadParameter(str(error), param_hint="--package") from None


def _templates(templates: Path, target: str) -> Writer:
    """Make the writer that fills templates."""
    if target != PYTHON:
        raise typer.BadParameter("not allowed with --target", param_hint="--templates")
    if not os.path.isdir(templates):
        raise typer.BadParameter(f"{templates}: not a directory", param_hint="--templates")

    def write(
        sources: tuple[Path, ...], out: Output, package: str | None, _: str
    ) -> GeneratedFiles:
        from kafkawire_codegen.user_templates import NAME, generate_templates

        name = package or NAME
        try:
            return generate_templates(sources, templates, out.folder, name=name, check=out.check)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--templates") from None

    return write


def _line(made: GeneratedFiles | GeneratedPackage) -> str:
    from kafkawire_codegen import GeneratedPackage

    changed = f"{plural(made.changed, 'file')} changed"
    if isinstance(made, GeneratedPackage):
        return f"{plural(len(made.modules), 'message')} in {made.out}, {changed}"
    messages, files = plural(made.messages, "message"), plural(made.files, "file")
    return f"{messages}, {files} in {made.out}, {changed}"
