"""Generates Python codecs from Kafka message schemas.

One function serves kafkawire's wheel, editable installs, the command line and other projects'
hooks. Used at build time; imports nothing of kafkawire. In a build hook of your own:

    from kafkawire_codegen import generate
    generate(schemas=Path("schemas"), out=Path("src/mine/messages"), package="mine.messages")

    source -> form -> rules -> schema -> model -> statements -> render -> compile
"""

from __future__ import annotations

from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .files import Sources
    from .targets import GeneratedFiles

__all__ = ["GeneratedPackage", "generate", "generate_templates", "is_package_name", "schemas_dir"]


@dataclass(frozen=True, slots=True)
class GeneratedPackage:
    """The result of `generate`.

    modules: the module of each message by name. changed_files: the names of changed files, sorted.
    """

    out: Path
    modules: dict[str, str]
    changed_files: tuple[str, ...]

    @property
    def changed(self) -> int:
        """The number of changed files."""
        return len(self.changed_files)


def generate(
    schemas: Sources,
    out: Path | str,
    package: str,
    *,
    runtime: str = "kafkawire",
    check: bool = False,
) -> GeneratedPackage:
    """Generate a package of codecs from every schema (`*.json`) of a directory or an archive.

    schemas: the directory, jar or ZIP archive, or several: a message of a later one replaces that
    of the same name. Kafka's own message directories and jars are accepted.
    out: the folder of the package: made if missing; generated files of removed messages are
    deleted, other files are never touched.
    package: its import name, for the docstrings.
    runtime: the package to import Reader, Writer and errors from.
    check: change nothing; `changed_files` are those that would change.

    Raises ValueError for a package or runtime that is not a dotted name of Python, and
    SchemaErrors, with every error as file:line:column, path, reason and rule; OSError if a source
    cannot be read or the folder cannot be written, FileExistsError if it has a file of that name
    that was not generated.
    """
    from .model import load
    from .output import write
    from .render import render

    for name in (package, runtime):
        if not is_package_name(name):
            raise ValueError(f"{name!r} is not a valid package name")
    messages = load(schemas)
    folder = Path(out)
    changed = write(render(messages, package, runtime), folder, check=check)
    return GeneratedPackage(folder, {m.name: m.module for m in messages}, changed)


def generate_templates(
    schemas: Sources,
    templates: Path | str,
    out: Path | str,
    *,
    name: str = "kafka",
    check: bool = False,
) -> GeneratedFiles:
    """Fill every Jinja2 template (`*.j2`) of a directory, as docs/templates.md describes.

    schemas: the directory. templates: the directory of templates. out: the output directory, made
    if missing; files that templates made there before and make no longer are deleted, other files
    are never touched. name: the variable `name` of the templates. check: change nothing;
    `changed_files` are those that would change.

    Raises ValueError if there is no template; before anything is written, TemplateErrors (of
    `kafkawire_codegen.user_templates`) with file, line and message, and SchemaErrors; OSError if a
    directory cannot be read or written, FileExistsError if `out` has a file of that name that was
    not generated.
    """
    from . import user_templates

    return user_templates.generate_templates(
        schemas, Path(templates), Path(out), name=name, check=check
    )


def is_package_name(name: str) -> bool:
    """Whether Python can import a package of that name."""
    return all(part.isidentifier() and not iskeyword(part) for part in name.split("."))


def schemas_dir() -> Path:
    """Find kafkawire's own schemas: in the installed package, or in the checkout."""
    here = Path(__file__).resolve().parent
    installed = here / "schemas"
    return installed if installed.is_dir() else here.parents[1] / "schemas"
