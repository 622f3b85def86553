"""Splits texts of schemas into parts, and names what pages link to.

"Fencing (KIP-320)."         -> "Fencing (", "KIP-320" with its address, ")."
Topics[].Partitions[].Index  -> topics.partitions.index, the anchor of its row
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ... import naming

_KIP: Final = re.compile(r"\bKIP-([1-9][0-9]{0,4})\b")
_WIKI: Final = (
    "https://cwiki.apache.org/confluence/dosearchsite.action?where=KAFKA&queryString=KIP-"
)


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a text. address: of the proposal that it names, or empty."""

    text: str
    address: str = ""


def parts(text: str) -> tuple[Part, ...]:
    """Split a text at the names of Kafka improvement proposals."""
    split: list[Part] = []
    end = 0
    for match in _KIP.finditer(text):
        split += [Part(text[end : match.start()]), Part(match[0], wiki(int(match[1])))]
        end = match.end()
    return tuple(part for part in (*split, Part(text[end:])) if part.text)


def kips(texts: Iterable[str]) -> tuple[int, ...]:
    """List the proposals that texts name, in order."""
    return tuple(sorted({int(match[1]) for text in texts for match in _KIP.finditer(text)}))


def wiki(kip: int) -> str:
    """Return the address of a search in Kafka's wiki: the page's own needs its title."""
    return f"{_WIKI}{kip}"


def anchor(path: str) -> str:
    """Return the anchor of a field: `topics.partitions.index` for `Topics[].Partitions[].Index`."""
    return ".".join(naming.snake(name) for name in path.replace("[]", "").split("."))
