"""Renders a folder of templates: which files each makes, and their text.

A file comes from one template, and for one message at most; nothing is written here.

    src/{{ message.name | snake }}.rs.j2 --each message--> src/fetch_request.rs, ...
    index.md.j2                          ----------------> index.md
    _macros.j2                           for include and import
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..output import LIST, File
from ..targets import Source
from .apis import apis_of, releases_of
from .faults import TemplateErrors, TemplateFault
from .messages import Message, message_of
from .sandbox import Templates

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
END: Final = ".j2"
PER_MESSAGE: Final = "message"
"""A template whose path contains this variable makes a file for each message."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The templates of a folder: texts by name, with `/`, and the files that errors name."""

    texts: dict[str, str]
    shown: dict[str, str]


def read(folder: Path) -> Folder:
    """Read every template of a folder; TemplateErrors for those that cannot be read.

    A link to a file outside of the folder is an error, and links to folders are not followed.
    """
    top = folder.resolve()
    templates = Folder({}, {})
    faults: list[TemplateFault] = []
    for path in sorted(_templates(folder)):
        name = path.relative_to(folder).as_posix()
        if not path.resolve().is_relative_to(top) or not path.is_file():
            faults.append(TemplateFault(str(path), 0, "", "not a file inside the folder"))
            continue
        try:
            templates.texts[name] = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            faults.append(TemplateFault(str(path), 0, "", f"not UTF-8 at byte {error.start}"))
        templates.shown[name] = str(path)
    if faults:
        raise TemplateErrors(tuple(faults))
    return templates


def _templates(folder: Path) -> Iterator[Path]:
    for at, _, names in os.walk(folder):
        yield from (Path(at, name) for name in names if name.endswith(END))


def is_partial(name: str) -> bool:
    """Whether a template is only for others: its name begins with one underscore."""
    last = name.rpartition("/")[2]
    return last.startswith("_") and not last.startswith("__")


def render(folder: Folder, source: Source) -> list[File]:
    """Render every template; TemplateErrors with the first error of each."""
    rendering = _Rendering(folder, source)
    faults: dict[str, TemplateFault] = {}  # one for templates that include the same wrong one
    for name in folder.texts:
        try:
            rendering.template(name)
        except TemplateFault as fault:
            faults.setdefault(str(fault), fault)
    if faults:
        raise TemplateErrors(tuple(faults.values()))
    return [File(path, text) for path, text in sorted(rendering.texts.items())]


class _Rendering:
    """Collects the rendered files of a folder.

    makers: the template of each file, and of each folder of one.
    """

    def __init__(self, folder: Folder, source: Source) -> None:
        self.shown = folder.shown
        self.templates = Templates(folder.texts, folder.shown)
        self.messages = tuple(message_of(message) for message in source.messages)
        self.values: dict[str, object] = {
            "messages": self.messages,
            "apis": apis_of(self.messages),
            "releases": releases_of(source.releases),
            "name": source.name,
        }
        self.texts: dict[str, str] = {}
        self.folders: dict[str, str] = {}
        self.makers: dict[str, str] = {}

    def template(self, name: str) -> None:
        """Render one template, for each message or once."""
        self.templates.compile(name)
        if is_partial(name):
            return
        if PER_MESSAGE not in self.templates.names_in_path(name):
            self.file(name, None)
            return
        for message in self.messages:
            self.file(name, message)

    def file(self, name: str, message: Message | None) -> None:
        """Render one file of a template; none if its name comes out empty."""
        values = self.values if message is None else {**self.values, PER_MESSAGE: message}
        about = "" if message is None else message.name
        path = self.templates.path(name, values, about)
        if not path.rpartition("/")[2]:
            return
        problem = _problem(path) or self.clash(path)
        if problem:
            raise TemplateFault(self.shown[name], 0, about, problem)
        self.makers[path] = name
        parents = path.split("/")[:-1]
        for count in range(1, len(parents) + 1):
            self.folders.setdefault("/".join(parents[:count]), name)
        text = self.templates.fill(name, values, about)
        if not text.isascii() and _SURROGATE.search(text):
            raise TemplateFault(self.shown[name], 0, about, "makes text that UTF-8 does not have")
        self.texts[path] = text

    def clash(self, path: str) -> str:
        """Say which template has made a file or folder at a path already; "" if none has."""
        maker = self.makers.get(path)
        if maker is not None:
            return f"makes the file {path!r}, which {self.shown[maker]} makes too"
        maker = self.folders.get(path)
        if maker is not None:
            return f"makes the file {path!r}, which is a folder for {self.shown[maker]}"
        parents = path.split("/")
        for count in range(1, len(parents)):
            maker = self.makers.get("/".join(parents[:count]))
            if maker is not None:
                return f"makes the file {path!r} inside the file of {self.shown[maker]}"
        return ""


def _problem(path: str) -> str:
    """Say why a file cannot have a path; "" if it can."""
    if not path.isprintable():
        return f"makes the file {path!r}: not a printable name"
    if "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return f"makes the file {path!r}: not a path inside the output folder"
    return f"makes the file {path!r}: the list of generated files" if path == LIST else ""
