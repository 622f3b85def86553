"""`kafkawire version`: shows versions and whether the codecs are compiled."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from kafkawire.display import printable

SHOWN: Final = frozenset(
    {
        *("COLUMNS", "FORCE_COLOR", "LANG", "LC_ALL", "NO_COLOR", "PYTHONUNBUFFERED", "TERM"),
        *("KAFKAWIRE_COMPILE", "KAFKAWIRE_COMPILE_STRICT"),
    }
)
"""Environment variables whose values a report has."""

NAMED: Final = "KAFKAWIRE_"
"""Prefix of the other variables that a report names: their values may be secret."""

REQUIREMENT: Final = re.compile(r"[\w.-]+")


def version(
    report: Annotated[
        bool, typer.Option("--report", help="Describe the environment, for a bug report.")
    ] = False,
) -> None:
    """Show versions and whether the codecs are compiled.

    \b
    kafkawire version
    kafkawire version --report

    A report has the versions of packages and the platform, but neither paths nor host names nor
    settings that may be secret.
    """
    import kafkawire

    lines = [
        ("kafkawire", kafkawire.__version__),
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("codecs", codecs()),
        *(environment() if report else ()),
    ]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        typer.echo(f"{name:{width}} {printable(text)}".rstrip())


def codecs() -> str:
    """Return how many messages are compiled."""
    from kafkawire.messages import REGISTRY
    from kafkawire.primitives import reader

    if str(reader.__file__).endswith(".py"):
        return "interpreted"
    native = [info for info in REGISTRY if is_compiled(info.module)]
    return f"compiled: {len(native)} of {len(REGISTRY)} messages"


def is_compiled(module: str) -> bool:
    """Return whether the module of a message is compiled, without importing it."""
    from importlib.util import find_spec

    spec = find_spec(f"kafkawire.messages.{module}")
    return spec is not None and not str(spec.origin).endswith(".py")


def environment() -> Iterator[tuple[str, str]]:
    """Describe the platform, the terminal, the environment and the packages."""
    libc, number = platform.libc_ver()
    yield "platform", f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "libc", f"{libc} {number}".strip() or "unknown"
    yield "processors", str(os.cpu_count())
    yield "output", f"{sys.stdout.encoding}, {'a' if sys.stdout.isatty() else 'no'} terminal"
    for name, value in sorted(os.environ.items()):
        if name in SHOWN:
            yield name, value
        elif name.startswith(NAMED):
            yield name, "(set)"
    yield from packages()


def packages() -> Iterator[tuple[str, str]]:
    """List the packages that kafkawire requires, with its extras, and their versions."""
    from importlib.metadata import PackageNotFoundError, requires
    from importlib.metadata import version as version_of

    seen = set()
    for requirement in requires("kafkawire") or ():
        match = REQUIREMENT.match(requirement)
        name = "" if match is None else match[0]
        is_of_development = re.search(r"extra == .(bench|dev|peers)\b", requirement)
        if not name or name == "kafkawire" or name in seen or is_of_development:
            continue
        seen.add(name)
        try:
            yield name, version_of(name)
        except PackageNotFoundError:
            yield name, "not installed"
