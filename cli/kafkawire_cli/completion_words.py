"""Joins the words of a command line that bash split at `:` and `=`.

`-b localhost:9092` is one value of an option, as it is when the command runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

WORDS: Final = "COMP_WORDS"
INDEX: Final = "COMP_CWORD"
BREAKS: Final = frozenset(":=")
"""The characters of COMP_WORDBREAKS that are common in values."""


def joined_words(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for completion by bash with joined words; nothing for other shells."""
    if WORDS not in environment or not environment.get(INDEX, "").isdecimal():
        return {}
    words = _split(environment[WORDS])
    index = int(environment[INDEX])
    joined: list[str] = []
    places: list[int] = []
    for at, word in enumerate(words):
        is_break = bool(word) and set(word) <= BREAKS
        after_break = at > 0 and bool(words[at - 1]) and set(words[at - 1]) <= BREAKS
        if joined and (is_break or (after_break and not word.startswith("-"))):
            joined[-1] += word
        else:
            joined.append(word)
        places.append(len(joined) - 1)
    place = places[index] if index < len(places) else len(joined)
    return {WORDS: shlex.join(joined), INDEX: str(place)}


def _split(text: str) -> list[str]:
    """Split words as a shell does; the last one may have an open quote."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words
