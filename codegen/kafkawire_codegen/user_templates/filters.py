"""The filters of templates: names, comments, JSON and tests of versions.

What a filter makes of a schema's text cannot end the comment or the string that it stands in.
"""

from __future__ import annotations

import json as json_text
import math
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from textwrap import wrap
from typing import Final

from .. import naming
from ..versions import VersionCondition

WIDTH: Final = 100

_INVISIBLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)
"""Characters that control, that change the direction of text, or that UTF-8 does not have."""


def snake(name: str) -> str:
    """`MaxWaitMs` -> `max_wait_ms`."""
    return naming.snake(name)


def constant(name: str) -> str:
    """`MaxWaitMs` -> `MAX_WAIT_MS`."""
    return naming.constant(name)


def camel(name: str) -> str:
    """`MaxWaitMs` -> `maxWaitMs`; acronyms are words: `ISRChange` -> `isrChange`."""
    text = pascal(name)
    return text[:1].lower() + text[1:]


def pascal(name: str) -> str:
    """`max_wait_ms`, `MaxWaitMs` -> `MaxWaitMs`; acronyms are words: `ISRChange` -> `IsrChange`."""
    return "".join(word.capitalize() for word in naming.snake(name).split("_"))


def kebab(name: str) -> str:
    """`MaxWaitMs` -> `max-wait-ms`."""
    return naming.snake(name).replace("_", "-")


def json_name(name: str) -> str:
    """`MaxWaitMs` -> `maxWaitMs`: Kafka's JSON form, which changes the first letter alone."""
    return naming.json_name(name)


def api_name(name: str) -> str:
    """`FetchRequest`, `FetchResponse` -> `Fetch`."""
    return naming.api_name(name)


def avoid(name: str, words: Collection[str], suffix: str = "_") -> str:
    """Append `suffix` to a name that is one of `words`: the reserved words of a language."""
    return name + suffix if name in words else name


def comment(text: str, prefix: str, width: int = WIDTH, without: Collection[str] = ()) -> str:
    """Text as lines of `prefix` and a blank before them, broken at `width`; "" if it is blank.

    Control characters become `?`, backslashes are doubled, none ends a line. `without`: what must
    not occur in it, such as the end of the comment: `["*/"]` is written `* /`.
    """
    text = " ".join(text.split()).replace("\\", "\\\\").replace("??/", "?? /")
    text = _INVISIBLE.sub("?", text)
    for end in without:
        apart = f"{end[:1]} {end[1:]}" if len(end) > 1 else " "
        while end and end in text:
            text = text.replace(end, apart)
    room = max(20, width - len(prefix) - 1)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{prefix} {line}{' .' * line.endswith(chr(92))}" for line in lines)


def condition(
    when: VersionCondition,
    variable: str = "version",
    both: str = " && ",
    always: str = "true",
    never: str = "false",
) -> str:
    """A test of a version in the syntax of most languages: `version >= 3 && version <= 5`."""
    if not when.depends:
        return always if when.always else never
    low, high = when.at_least, when.at_most
    if low is not None and low == high:
        return f"{variable} == {low}"
    tests = [f"{variable} >= {low}"] if low is not None else []
    tests += [f"{variable} <= {high}"] if high is not None else []
    return both.join(tests)


def json(value: object) -> str:
    """JSON text in ASCII, of any default too: bytes are base64, `NaN` and infinities strings.

    A string of it is one of Go, Java, JavaScript and Python too, if all of it is in the BMP.
    """
    if isinstance(value, float) and not math.isfinite(value):
        value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return json_text.dumps(value, default=_base64)


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no JSON form")


FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    function.__name__: function
    for function in (
        snake,
        constant,
        camel,
        pascal,
        kebab,
        json_name,
        api_name,
        avoid,
        comment,
        condition,
        json,
    )
}
"""Every filter by its name; Jinja2's own are there too."""
