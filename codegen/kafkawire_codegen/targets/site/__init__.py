"""Writes a protocol reference as static HTML, to be read without a server or network.

Every text of a schema is escaped by the templates; scripts put text into pages as text. A page
links only to files and anchors that exist. What the source lacks (releases, error codes, examples)
is left out, with the links to it.

    Source --pages--> index, names, message by message, errors, releases, diff, kips, types
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...output import File
from ...templating import unfilled
from .. import Source
from . import data
from .book import Book
from .pages import pages

__all__ = ["NAME", "files"]

NAME: Final = "Kafka protocol"
ASSETS: Final = ("site.css", "site.js", "search.js")
"""Files of every site, as they are in the templates."""


def files(source: Source) -> Iterable[File]:
    """Make the site; SchemaErrors for a message with too many fields to list."""
    book = Book.of(source)
    yield from pages(book)
    yield from _assets(book)


def _assets(book: Book) -> Iterator[File]:
    for name in ASSETS:
        yield File(f"assets/{name}", unfilled(f"site/{name}"))
    entries = data.search(book.listed, book.errors, book.kips)
    yield File("assets/search-data.js", data.script("searchData", entries))
    if book.releases is not None:
        yield File("assets/diff.js", unfilled("site/diff.js"))
        differences = data.differences(book.listed, book.releases)
        yield File("assets/diff-data.js", data.script("diffData", differences))
