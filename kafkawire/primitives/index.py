"""Maps names and API keys to message classes.

Listing messages imports none of them; a module is imported when its class is first used.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import UnknownApiKey


class MessageInfo(NamedTuple):
    """Facts of a message, without importing it.

    type: request, response, header, data, metadata, coordinator-key or coordinator-value. first,
    last: its valid versions, both included; flexible: the first version with tagged fields, None
    for none. latest_unstable: whether `last` may still change. headers: where a header version
    begins: (first version with it, header version), in order; () for a message without a header.
    """

    name: str
    module: str
    type: str
    api_key: int | None
    first: int
    last: int
    flexible: int | None
    latest_unstable: bool
    headers: tuple[tuple[int, int], ...] = ()

    def is_flexible(self, version: int) -> bool:
        """Whether that version has compact lengths and tagged fields (KIP-482)."""
        return self.flexible is not None and version >= self.flexible

    def header_version(self, version: int) -> int:
        """Return the version of the header in front of a version, also of an unknown one.

        ValueError for a message without a header.
        """
        if not self.headers:
            raise ValueError(f"{self.name} has no header")
        header_version = self.headers[0][1]
        for first, header in self.headers:
            if first <= version:
                header_version = header
        return header_version


def message_rows(text: str) -> tuple[MessageInfo, ...]:
    """Read messages, one per line: the fields of MessageInfo in their order, `-` for None.

    Headers are written as `0:1,12:2`: header version 1 from version 0 on, 2 from version 12 on.
    """
    rows = []
    for line in text.splitlines():
        name, module, type, api_key, first, last, flexible, latest, headers = line.split(" ")
        rows.append(
            MessageInfo(
                name,
                module,
                type,
                None if api_key == "-" else int(api_key),
                int(first),
                int(last),
                None if flexible == "-" else int(flexible),
                latest == "unstable",
                () if headers == "-" else _header_rows(headers),
            )
        )
    return tuple(rows)


def _header_rows(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (pair.partition(":") for pair in text.split(","))
    return tuple((int(first), int(header)) for first, _, header in pairs)


class MessageIndex:
    """The messages of one generated package."""

    def __init__(self, package: str, messages: tuple[MessageInfo, ...]) -> None:
        self.package = package
        self._by_name = {info.name: info for info in messages}
        self._by_key = {
            (info.type, info.api_key): info for info in messages if info.api_key is not None
        }
        self._classes: dict[str, Any] = {}
        self._requests: dict[int, Any] = {}

    def __iter__(self) -> Iterator[MessageInfo]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def get(self, name: str) -> MessageInfo:
        """Find a message by its exact name; UnknownApiKey, with similar names, if there is none."""
        info = self._by_name.get(name)
        if info is None:
            raise UnknownApiKey(f"unknown message {name!r}{self._hint(name)}")
        return info

    def _hint(self, name: object) -> str:
        """Return the names that may be meant: of an API, or a similar one."""
        from ..display import did_you_mean  # imported at the first error

        of_api = [each for each in (f"{name}Request", f"{name}Response") if each in self._by_name]
        if of_api:
            return f"; did you mean {' or '.join(map(repr, of_api))}?"
        return did_you_mean(str(name), self._by_name)

    def find(self, type: str, api_key: int) -> MessageInfo | None:
        """Find the message of a type (`request`, `metadata`, `coordinator-key`, ...) by API key."""
        return self._by_key.get((type, api_key))

    def request(self, api_key: int) -> MessageInfo | None:
        """Find the request of an API."""
        return self._by_key.get(("request", api_key))

    def request_class(self, api_key: int) -> Any:
        """Import the class of the request of an API; None if there is none."""
        cls = self._requests.get(api_key)
        if cls is None:
            info = self.request(api_key)
            if info is not None:
                cls = self._requests[api_key] = self.load(info.name)
        return cls

    def response(self, api_key: int) -> MessageInfo | None:
        """Find the response of an API."""
        return self._by_key.get(("response", api_key))

    def load(self, name: str) -> Any:
        """Import the class of a message; UnknownApiKey if there is none."""
        cls = self._classes.get(name)
        if cls is None:
            info = self.get(name)
            cls = getattr(import_module(f"{self.package}.{info.module}"), name)
            self._classes[name] = cls
        return cls
