"""Reads generated HTML pages with html.parser: tables, anchors, links and texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})


@dataclass
class Cell:
    """A cell of a table: its element, attributes, texts by the class they are in, and links."""

    tag: str
    attributes: dict[str, str]
    texts: list[tuple[str, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(text for _, text in self.texts).split())

    def of(self, name: str) -> list[str]:
        """Return the texts inside elements of a class or a kind, without spaces around."""
        return [text.strip() for path, text in self.texts if name in path.split() and text.strip()]


@dataclass
class Row:
    attributes: dict[str, str]
    cells: list[Cell] = field(default_factory=list)


@dataclass
class Table:
    attributes: dict[str, str]
    head: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


class Page(HTMLParser):
    """A page: `tables`, `ids`, `links` (of any element), `elements` by name, its whole `text`.

    within: the nearest `details` of each table, by its number.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[Table] = []
        self.within: dict[int, dict[str, str]] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: dict[str, int] = {}
        self.texts: list[str] = []
        self.facts: dict[str, str] = {}
        self._path: list[tuple[str, str]] = []
        self._details: list[dict[str, str]] = []
        self._in_head = False
        self._cell: Cell | None = None
        self._row: Row | None = None
        self._term = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements[tag] = self.elements.get(tag, 0) + 1
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]
        if tag in ("td", "th", "tr"):
            while self._path and self._path[-1][0] not in ("tr", "tbody", "thead", "table"):
                self._path.pop()
            if tag == "tr" and self._path and self._path[-1][0] == "tr":
                self._path.pop()
        if self._cell is not None and "href" in attributes:
            self._cell.links.append(attributes["href"])
        self._structure(tag, attributes)
        if tag not in VOID:
            self._path.append((tag, attributes.get("class", "")))

    def _structure(self, tag: str, attributes: dict[str, str]) -> None:
        match tag:
            case "details":
                self._details.append(attributes)
            case "table":
                if self._details:
                    self.within[len(self.tables)] = self._details[-1]
                self.tables.append(Table(attributes))
            case "thead" | "tbody":
                self._in_head = tag == "thead"
            case "tr":
                self._row = Row(attributes)
                table = self.tables[-1]
                (table.head if self._in_head else table.rows).append(self._row)
            case "td" | "th":
                assert self._row is not None
                self._cell = Cell(tag, attributes)
                self._row.cells.append(self._cell)
            case _:
                pass

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._details.pop()
        if tag in ("td", "th", "tr", "table"):
            self._cell = None
        while self._path:
            open_tag, _ = self._path.pop()
            if open_tag == tag:
                break

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._cell is not None:
            path = " ".join(f"{tag} {classes}" for tag, classes in self._path)
            self._cell.texts.append((path, data))
        elif self._path and self._path[-1][0] == "dt":
            self._term = data
        elif any(tag == "dd" for tag, _ in self._path):
            self.facts[self._term] = self.facts.get(self._term, "") + data

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def table(self, identifier: str) -> Table:
        return next(t for t in self.tables if t.attributes.get("id") == identifier)


def read(file: Path) -> Page:
    return Page(file.read_text("utf-8"))
