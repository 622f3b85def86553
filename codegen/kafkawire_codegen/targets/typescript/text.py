"""Text of schemas in TypeScript: string literals, comments, JSON.

Text of a schema, with any content, ends neither its string nor its comment, and no character
that cannot be seen changes how the code is read.
"""

from __future__ import annotations

import base64
import json
import math
from textwrap import wrap
from typing import Final

from ...versions import VersionCondition

INDENT: Final = "  "
WIDTH: Final = 100


def literal(value: object) -> str:
    """Write a text, a number or a truth value."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value)
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case _:
            return repr(value)


def uuid(value: bytes) -> str:
    """Write 16 bytes as Kafka writes a uuid."""
    return base64.urlsafe_b64encode(value).decode("ascii")[:22]


def comment(text: str, indent: str = "") -> list[str]:
    """Write a TSDoc comment: one line, or as many as it takes."""
    lines = wrap(_harmless(text), WIDTH - len(indent) - len(" * "), break_on_hyphens=False)
    if not lines:
        return []
    if len(lines) == 1 and len(lines[0]) + len(indent) + len("/**  */") <= WIDTH:
        return [f"{indent}/** {lines[0]} */"]
    return [f"{indent}/**", *(f"{indent} * {line}" for line in lines), f"{indent} */"]


def _harmless(text: str) -> str:
    """Escape the end of a comment, TSDoc's tags, and what cannot be seen, such as directions."""
    shown = "".join(c if c.isprintable() else _escaped(c) for c in text)
    return shown.replace("*/", "*\\/").replace("@", "\\@")


def _escaped(character: str) -> str:
    return " " if character.isspace() else f"\\u{{{ord(character):x}}}"


def condition(c: VersionCondition) -> str:
    """Write the shortest test of the variable `version`."""
    if not c.depends:
        return literal(c.always)
    low, high = c.at_least, c.at_most
    if low is not None and low == high:
        return f"version === {low}"
    tests = ([] if low is None else [f"version >= {low}"]) + (
        [] if high is None else [f"version <= {high}"]
    )
    return " && ".join(tests)
