"""Joins the cells of a message to a line that fits the terminal.

In a pipe nothing is cut. On a terminal, errors and values are cut last: where they do not fit
beside the columns, they have a line of their own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkawire.display import ELISION, clipped, text_width

from .style import RESET, Style

LEAST: Final = 8
"""The width in which the beginning of a text says something."""


class Cell(NamedTuple):
    """Part of a line, escaped; colour: "" for none. is_whole: it is cut last."""

    text: str
    colour: str = ""
    is_whole: bool = False


def joined(cells: list[Cell], look: Style) -> str:
    """Join cells, fitted to the width."""
    spaced = [
        cell._replace(text=f" {cell.text}" if at else cell.text) for at, cell in enumerate(cells)
    ]
    if look.width is None or _width(spaced) <= look.width:
        return _cut(spaced, None, look).rstrip()
    columns, content = spaced[: len(look.columns)], spaced[len(look.columns) :]
    whole = [cell for cell in content if cell.is_whole]
    others = [cell for cell in content if not cell.is_whole]
    beside = look.width - _width(columns)
    if not whole:
        return _cut(columns + others, look.width, look).rstrip()
    left = beside - _width(whole)
    if left >= min(LEAST, _width(others)):
        shown = _cut(columns, None, look) + _cut(others, left, look)
        return (shown + _cut(whole, None, look)).rstrip()
    whole[0] = whole[0]._replace(text=f" {whole[0].text.lstrip()}")
    if _width(whole) <= beside:
        return _cut(columns + whole, None, look).rstrip()
    line = _cut(columns + others, look.width, look).rstrip()
    indent = max(0, min(_width(columns), look.width - _width(whole)))
    return f"{line}\n{' ' * indent}{_cut(whole, look.width - indent, look)}"


def _width(cells: list[Cell]) -> int:
    return sum(text_width(cell.text) for cell in cells)


def _cut(cells: list[Cell], width: int | None, look: Style) -> str:
    """Join cells, cut at a width; None for all of them."""
    if width is None or _width(cells) <= width:
        return "".join(_in(cell.text, cell.colour, look) for cell in cells)
    room = max(0, width - len(ELISION))
    shown: list[str] = []
    for cell in cells:
        part = clipped(cell.text, room)
        shown.append(_in(part, cell.colour, look))
        room -= text_width(part)
        if part != cell.text:
            break
    return "".join(shown) + ELISION[: max(0, width)]


def _in(text: str, colour: str, look: Style) -> str:
    return f"{colour}{text}{RESET}" if look.colour and colour and text.strip() else text
