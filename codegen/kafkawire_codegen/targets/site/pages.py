"""Fills the template of each page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from ...output import File
from ...templating import fill_html
from ...wire_types import WIRE_TYPES
from .book import RECORDS, Api, Book, Entry
from .examples import Example, examples
from .history import general, history
from .table import Table, table
from .texts import anchor, kips, parts, wiki
from .timeline import matrix, timeline
from .wire import type_rows

HEADERS: Final = {"request": "RequestHeader", "response": "ResponseHeader"}

GROUPS: Final = (
    (
        "Metadata records",
        "metadata-records",
        "What controllers write to the metadata log, by record number.",
        ("metadata",),
    ),
    (
        "Records of coordinators",
        "coordinator-records",
        "Keys and values in the internal topics of coordinators, by record number.",
        ("coordinator-key", "coordinator-value"),
    ),
    ("Headers", "header-messages", "What stands before a request or response.", ("header",)),
    (
        "Other messages",
        "other-messages",
        "Structures inside bytes fields, in files, and in other topics.",
        ("data",),
    ),
)
"""Tables of the first page below its APIs: heading, anchor, text, types of messages."""


def pages(book: Book) -> Iterator[File]:
    """Make every page."""
    site = _Site(book)
    pairs = sum(len(entry.message.versions) for entry in book.entries)
    groups = [(*heading, book.of_types(*types)) for *heading, types in GROUPS]
    yield site.page("index", book.name, pairs=pairs, groups=groups)
    yield site.page("names", "Messages by name", letters=_letters(book))
    yield site.page("types", "Types on the wire", rows=type_rows())
    if book.errors:
        yield site.page("errors", "Error codes")
    if book.kips:
        yield site.page("kips", "KIPs", rows=_mentions(book))
    if book.releases is not None:
        keys = {api.name: api.key for api in book.apis if api.key is not None}
        rows = matrix(book.releases, keys)
        releases = timeline(book.releases)
        named = {api.name: api.entry.message.name for api in book.apis}
        yield site.page("releases", "Releases", releases=releases, rows=rows, pages=named)
        yield site.page("diff", "Compare two releases", releases=list(book.releases.ranges))
    for entry in book.entries:
        yield site.message(entry)


class _Site:
    """What every page gets: the book and the menu."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.apis = {api.name: api for api in book.apis}
        self.records = {entry.message.name: entry for entry in book.of_types(*RECORDS)}
        self.headers = {entry.message.name for entry in book.of_types("header")}
        optional = (
            ("errors.html", "Errors", bool(book.errors)),
            ("releases.html", "Releases", book.releases is not None),
            ("diff.html", "Compare", book.releases is not None),
            ("kips.html", "KIPs", bool(book.kips)),
            ("types.html", "Types", True),
        )
        self.menu = [("index.html", "APIs" if book.apis else "Messages"), ("names.html", "A–Z")]
        self.menu += [(file, label) for file, label, there in optional if there]

    def page(self, name: str, title: str, **values: object) -> File:
        return File(f"{name}.html", self.fill(name, f"{name}.html", title, "", values))

    def fill(
        self, template: str, here: str, title: str, root: str, values: dict[str, object]
    ) -> str:
        common = {"book": self.book, "menu": self.menu, "here": here, "title": title, "root": root}
        return fill_html(f"site/{template}.html.j2", **common, **values)

    def message(self, entry: Entry) -> File:
        book, name = self.book, entry.message.name
        api = self.apis.get(entry.message.api) if entry.message.headers else None
        arranged = table(entry.schema, entry.spots)
        columns = arranged.columns
        values: dict[str, object] = {
            "entry": entry,
            "api": api,
            "partner": self.partner(entry),
            "facts": list(_facts(entry, api)),
            "header": HEADERS.get(entry.message.type) if self.has_header(entry) else None,
            "remarks": [parts(text) for text in general(entry.comments, entry.message.versions)],
            "table": arranged,
            "types": WIRE_TYPES,
            "history": history(
                entry.schema, entry.message, entry.spots, columns, entry.comments, book.releases
            ),
            "released": book.releases is not None and api is not None,
            "examples": self.examples(entry, arranged),
        }
        here = f"messages/{name}.html"
        return File(here, self.fill("message", here, name, "../", values))

    def examples(self, entry: Entry, arranged: Table) -> list[Example]:
        if self.book.examples is None:
            return []
        anchors = {row.anchor for row in arranged.rows}
        return examples(entry.message, arranged.columns, anchors, self.book.examples)

    def has_header(self, entry: Entry) -> bool:
        """Whether the schemas have the message that stands before requests or responses."""
        return HEADERS.get(entry.message.type) in self.headers

    def partner(self, entry: Entry) -> tuple[Entry, Entry] | None:
        """Find the key and the value of a coordinator's record."""
        name = entry.message.name
        stem = name.removesuffix("Key").removesuffix("Value")
        key, value = self.records.get(f"{stem}Key"), self.records.get(f"{stem}Value")
        return (key, value) if key and value else None


def _facts(entry: Entry, api: Api | None) -> Iterator[tuple[str, str]]:
    """Give the facts of a message that are the same in every version."""
    message = entry.message
    if message.api_key is not None:
        yield ("API key" if message.headers else "Number"), str(message.api_key)
    yield "Versions", _span(message.versions)
    yield "Flexible versions", _span(message.flexible)
    if message.deprecated:
        yield "Deprecated versions", _span(message.deprecated)
    if message.latest_unstable:
        yield "Unstable version", str(message.versions.high)
    if message.headers:
        headers = (f"{header} in {_span(versions)}" for versions, header in message.headers)
        yield f"{entry.kind} header", "version " + ", ".join(headers)
    if api is not None and api.receivers:
        verb = "Sent to" if message.type == "request" else "Sent by"
        yield verb, " and ".join(api.receivers)
    if api is not None and api.oldest is not None and api.newest is not None:
        since = f"{api.oldest.since}{' or earlier' if api.oldest.earliest else ''}"
        until = f", removed in {api.newest.until}" if api.newest.until else ""
        yield "Kafka", f"since {since}{until}"
    yield "Fields", str(len(entry.spots))


def _span(versions: object) -> str:
    return str(versions).replace("-", "–")


def _letters(book: Book) -> list[tuple[str, list[Entry]]]:
    entries = sorted(book.entries, key=lambda entry: entry.message.name)
    grouped = groupby(entries, key=lambda entry: entry.message.name[0])
    return [(letter, list(of)) for letter, of in grouped]


def _mentions(book: Book) -> list[tuple[int, str, list[tuple[str, str, str]]]]:
    """List the proposals: number, address, and who names it, as message, anchor and path."""
    users: dict[int, list[tuple[str, str, str]]] = {}
    for entry in book.entries:
        name = entry.message.name
        for kip in kips([entry.schema.about, *entry.comments]):
            users.setdefault(kip, []).append((name, "", ""))
        for spot in entry.spots:
            for kip in kips([spot.field.about]):
                path = spot.path.replace("[]", "")
                users.setdefault(kip, []).append((name, anchor(spot.path), path))
    return [(kip, wiki(kip), uses) for kip, uses in sorted(users.items())]
