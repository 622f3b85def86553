"""Topics that match a regular expression of a member, in RE2's syntax.

RE2 takes time that is linear in the topic names, whatever the expression: members may send any. It
is google-re2, of the extra `re2`; without it, expressions are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

MISSING: Final = "this broker has no RE2 (install kafkawire[re2])"
MAX_BYTES: Final = 1 << 20
"""Memory of a compiled expression; a larger one is refused."""


def pattern_error(expression: str) -> str | None:
    """Return why an expression is refused, or None."""
    compiled = _compiled(expression)
    return compiled if isinstance(compiled, str) else None


def matching(expression: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that an expression matches as a whole; none if it is invalid."""
    compiled = _compiled(expression)
    if isinstance(compiled, str):
        return frozenset()
    return frozenset(name for name in names if compiled.fullmatch(name) is not None)


def _compiled(expression: str) -> Any | str:
    """Return the compiled expression, or why it is refused."""
    try:
        re2 = import_module("re2")
    except ImportError:
        return MISSING
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_BYTES
    try:
        return re2.compile(expression, options=options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
