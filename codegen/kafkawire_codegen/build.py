"""The build step: a directory of schemas -> a package of codecs.

Law: one function does it for everybody: our own wheel, an editable install, the command line, other
projects' hooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path


@dataclass(frozen=True, slots=True)
class GeneratedPackage:
    """What `generate` made: the messages by name, with the module each is in, and how many files
    changed.
    """

    out: Path
    modules: dict[str, str]
    changed: int


def generate(
    schemas: Path, out: Path, package: str, *, runtime: str = "kafkawire"
) -> GeneratedPackage:
    """Generate a package of codecs from every schema (`*.json`) of a directory.

    schemas: the directory; Kafka's own message directories are read as they are.
    out: the folder of the package: made if missing; generated files of messages that are gone are
    removed, files that somebody wrote never touched.
    package: its import name, for the docstrings.
    runtime: the package to import Reader, Writer and errors from.

    Raises ValueError for a package or runtime that is not a dotted name of Python, and
    SchemaErrors, which holds every fault found as file:line:column, path, reason and rule;
    OSError where the folder cannot be written, FileExistsError where a file there is not ours.
    """
    from .model import load
    from .render import render, write

    for name in (package, runtime):
        if not is_package_name(name):
            raise ValueError(f"{name!r} is not a valid package name")
    messages = load(schemas)
    changed = write(render(messages, package, runtime), out)
    return GeneratedPackage(out, {m.name: m.module for m in messages}, changed)


def is_package_name(name: str) -> bool:
    """Whether Python can import a package of that name."""
    return all(part.isidentifier() and not iskeyword(part) for part in name.split("."))


def schemas_dir() -> Path:
    """Find kafkawire's own schemas: inside the installed package, or in the checkout it is run
    from.
    """
    here = Path(__file__).resolve().parent
    installed = here / "schemas"
    return installed if installed.is_dir() else here.parents[1] / "schemas"
