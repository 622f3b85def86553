"""Finds the package of `--registry`: generated messages that are not Kafka's.

Nothing of the current directory is imported unless a package is requested.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.display import printable

if TYPE_CHECKING:
    from kafkawire import Registry

OPTION: Final = "--registry"

SOURCES: Final = "src"
"""The folder of a project's packages, in what Python's packaging guide calls the src layout."""

RegistryOption = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="PACKAGE",
        help="Generated package with the messages, such as mine.messages [default: Kafka's].",
        show_default=False,
    ),
]

BROKEN: Final = (ImportError, SyntaxError, ValueError, TypeError, AttributeError, NameError)
"""What the import of a package that is not a generated one may raise."""


def registry(name: str | None) -> Registry:
    """Import the package, also from the current directory; a usage error if that fails."""
    from kafkawire import Registry
    from kafkawire.protocol.packages import OURS

    if name is None:
        return Registry(OURS)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return Registry(name)
    except BROKEN as error:
        raise typer.BadParameter(printable(_reason(name, error)), param_hint=OPTION) from None


def _reason(name: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
        return f"no package {name!r} on the Python path or in the current directory{_hint(name)}"
    if type(error) is ValueError:
        return str(error) or f"invalid package name {name!r}"
    return f"cannot import {name!r}: {type(error).__name__}: {error}"


def _hint(name: str) -> str:
    """Say how to import a package that is in the folder `src`."""
    if not Path(SOURCES, *name.split(".")).is_dir():
        return ""
    return f"; it is in {SOURCES}: set PYTHONPATH={SOURCES}, or install the project"
