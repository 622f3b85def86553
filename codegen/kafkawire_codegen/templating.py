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


def fill(template: str, **values: object) -> str:
    """Fill a template of this package; its name is relative to `templates`."""
    return _ENVIRONMENT.get_template(template).render(**values)
