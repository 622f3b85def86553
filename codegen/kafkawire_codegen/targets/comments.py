"""Reads the comments of a schema file, which say what its keys cannot.

A comment is a line that begins with `//`; one about a licence is left out.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final

_PARAGRAPHS: Final = re.compile(r"\n\n+|(?<=[.])\n(?=Version)")
"""An empty line, or a sentence that begins a line and is about a version."""
_LICENCE: Final = re.compile("licen[cs]e", re.IGNORECASE)


def comments(text: str) -> tuple[str, ...]:
    """Return the paragraphs of the comments in a schema's text."""
    lines = [line.strip() for line in text.splitlines()]
    paragraphs: list[str] = []
    for is_comment, block in groupby(lines, key=lambda line: line.startswith("//")):
        text = "\n".join(line.removeprefix("//").strip() for line in block)
        if is_comment and not _LICENCE.search(text):
            paragraphs += [" ".join(paragraph.split()) for paragraph in _PARAGRAPHS.split(text)]
    return tuple(paragraph for paragraph in paragraphs if paragraph)
