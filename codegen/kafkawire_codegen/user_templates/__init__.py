"""Generates files from templates of your own: a folder of Jinja2 templates, a documented model.

schemas -> generator's model -> model of templates --templates--> files -> output folder
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..files import Sources
from ..output import write_listed
from ..targets import GeneratedFiles, source_of
from .faults import TemplateErrors, TemplateFault
from .rendering import read, render

NAME: Final = "kafka"
"""The variable `name` of templates where none is given."""

LISTED_AS: Final = "templates"
"""The target of these files in the list of generated files."""

__all__ = ["TemplateErrors", "TemplateFault", "generate_templates"]


def generate_templates(
    schemas: Sources, templates: Path, out: Path, *, name: str = NAME, check: bool = False
) -> GeneratedFiles:
    """Fill every template (`*.j2`) of a folder, and write the files, to the same paths, to `out`.

    A template whose path contains `message` makes a file for each message. Files that templates
    made there before and make no longer are removed; no other file is touched.
    check: change nothing.

    Raises ValueError if the folder has no template; TemplateErrors for the templates, SchemaErrors
    for the schemas, both before anything is written; OSError if a folder cannot be read or written,
    FileExistsError if `out` has a file of that name that was not generated.
    """
    folder = read(templates)
    if not folder.texts:
        raise ValueError(f"{templates}: no templates (*.j2) in this directory")
    source = source_of(schemas, name)
    files = render(folder, source)
    changed = write_listed(files, out, LISTED_AS, check=check)
    return GeneratedFiles(out, len(source.messages), len(files), changed)
