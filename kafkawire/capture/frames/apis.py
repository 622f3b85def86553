"""Caches what the capture engine needs to know of an API key for every frame.

Law: all of it comes from the registry; a class is imported when its first body is decoded.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from ...messages import REGISTRY
from ...primitives import MessageInfo

NEVER: Final = 1 << 15


@final
class Side:
    """The requests or the responses of an API: their versions and their class."""

    def __init__(self, info: MessageInfo) -> None:
        self.info: MessageInfo = info
        self.first: int = info.first
        self.last: int = info.last
        self._class: Any = None

    def load(self) -> Any:
        """Return the message class."""
        if self._class is None:
            self._class = REGISTRY.load(self.info.name)
        return self._class


@final
class Api:
    """An API by its key; name and sides are None for an unknown key.

    tagged: the first version whose request headers have tagged fields.
    """

    def __init__(self, key: int) -> None:
        self.name: str | None = None
        self.tagged: i64 = NEVER
        self.request: Side | None = None
        self.response: Side | None = None
        request, response = REGISTRY.request(key), REGISTRY.response(key)
        if request is not None:
            self.name = request.name.removesuffix("Request")
            self.request = Side(request)
            if request.flexible is not None:
                self.tagged = request.flexible
        if response is not None:
            self.response = Side(response)


_apis: Final[dict[int, Api]] = {}


def api(key: int) -> Api:
    """Look up an API key; unknown keys are not cached."""
    found = _apis.get(key)
    if found is None:
        found = Api(key)
        if found.request is not None or found.response is not None:
            _apis[key] = found
    return found
