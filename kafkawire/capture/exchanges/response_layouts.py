"""Lists the wire formats of all responses of a package: layouts.

A layout is an API with adjacent versions of the same wire format: Metadata 5-6 is one. Every
version of every response has exactly one layout.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ...primitives import Structure
from ...protocol.fields import fields_at
from ...protocol.header import response_header_version
from ..frames.apis import KAFKA_APIS, Apis


class Layout(NamedTuple):
    """The wire format of a response in versions first to last; api_name as in rows."""

    api_key: int
    api_name: str
    message: str
    first: int
    last: int
    header_version: int

    def __str__(self) -> str:
        return f"{self.api_name} {self.first}" + (f"-{self.last}" if self.last > self.first else "")

    def covers(self, api_key: int, api_version: int) -> bool:
        """Whether a response to such a request has this layout."""
        return api_key == self.api_key and self.first <= api_version <= self.last


@cache
def layouts(apis: Apis = KAFKA_APIS) -> tuple[Layout, ...]:
    """List the layouts of all responses. Imports all response classes."""
    listed: list[Layout] = []
    for info in apis.package.index:
        if info.type == "response" and info.api_key is not None:
            listed += _layouts_of(apis, info.api_key)
    return tuple(listed)


@cache
def _layouts_of(apis: Apis, api_key: int) -> tuple[Layout, ...]:
    index = apis.package.index
    info = index.response(api_key)
    assert info is not None
    cls = index.load(info.name)
    listed: list[Layout] = []
    shape: tuple[int, bool, tuple[Any, ...]] | None = None
    for version in range(info.first, info.last + 1):
        header_version = response_header_version(api_key, version, apis.package)
        here = header_version, info.is_flexible(version), _shape(cls, version)
        if listed and here == shape:
            listed[-1] = listed[-1]._replace(last=version)
        else:
            name = info.name.removesuffix("Response")
            listed.append(Layout(api_key, name, info.name, version, version, header_version))
        shape = here
    return tuple(listed)


def layouts_of(api_key: int, api_version: int, apis: Apis = KAFKA_APIS) -> list[Layout]:
    """List the layouts of the response to such a request: one, or none for an unknown version."""
    if apis.package.index.response(api_key) is None:
        return []
    return [one for one in _layouts_of(apis, api_key) if one.covers(api_key, api_version)]


def _shape(cls: type[Structure], version: int) -> tuple[Any, ...]:
    """List the fields of a version, recursively."""
    return tuple(
        (
            field.attribute,
            field.element,
            field.is_array,
            () if field.struct is None else _shape(field.struct, version),
        )
        for field in fields_at(cls, version)
    )
