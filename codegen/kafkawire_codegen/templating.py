"""Fills templates; the only module that imports jinja2."""

from __future__ import annotations

from typing import Final

import jinja2

from . import naming

_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("kafkawire_codegen"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)
_ENVIRONMENT.filters |= {
    "snake": naming.snake,
    "constant": naming.constant,
    "json_name": naming.json_name,
    "api_name": naming.api_name,
}


_LOADER: Final = jinja2.PackageLoader("kafkawire_codegen")


def _visible(value: object) -> object:
    """Write the control characters of a text as escapes; markup of a template stays as it is."""
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value
    return "".join(c if c.isprintable() else _ESCAPED.get(c) or _escape(c) for c in value)


_ESCAPED: Final = {"\n": " ", "\r": " ", "\t": " ", "\u00a0": "\u00a0"}
"""Characters that HTML shows as spaces."""


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


_HTML: Final = jinja2.Environment(
    loader=_LOADER,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=True,
    finalize=_visible,
)


def fill(template: str, **values: object) -> str:
    """Fill a template of this package; its name is relative to `templates`."""
    return _ENVIRONMENT.get_template(template).render(**values)


def fill_html(template: str, **values: object) -> str:
    """Fill a template of HTML: every value is escaped, its control characters are visible."""
    return _HTML.get_template(template).render(**values)


def unfilled(template: str) -> str:
    """Return a file of `templates` as it is."""
    return _LOADER.get_source(_HTML, template)[0]
