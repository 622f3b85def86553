"""Writes notes and errors to standard error: a line each, after the name of the verb."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Final

from kafkawire.display import printable

PROGRAM: Final = "kafkawire"

_verb: ContextVar[str] = ContextVar("verb", default="")


def keep_verb(verb: str) -> None:
    """Keep the name of the verb that was called."""
    _verb.set(verb)


def print_note(text: str) -> None:
    """Write `kafkawire VERB: text`; control characters are escaped."""
    name = f"{PROGRAM} {_verb.get()}".rstrip()
    print(printable(f"{name}: {text}"), file=sys.stderr, flush=True)
