"""The APIs and releases that templates see: requests with their responses, and their versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .. import naming
from ..model import TYPES_WITH_FRAME
from ..releases import Releases
from ..versions import NONE, Versions
from .messages import Message


class Api:
    """An API: its request and its response."""

    __slots__ = ("_key", "_messages", "_name")

    def __init__(self, key: int, name: str, messages: dict[str, Message]) -> None:
        self._key = key
        self._name = name
        self._messages = messages

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def key(self) -> int:
        """The API key."""
        return self._key

    @property
    def name(self) -> str:
        """The name: `Fetch`."""
        return self._name

    @property
    def request(self) -> Message | None:
        """The request; None if the schemas have none."""
        return self._messages.get("request")

    @property
    def response(self) -> Message | None:
        """The response; None if the schemas have none."""
        return self._messages.get("response")


class Release:
    """A release of Kafka, from `releases.json`."""

    __slots__ = ("_name", "_ranges", "_unstable")

    def __init__(
        self, name: str, ranges: Mapping[str, Versions], unstable: Mapping[str, Versions]
    ) -> None:
        self._name = name
        self._ranges = ranges
        self._unstable = unstable

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """The name: `4.1`."""
        return self._name

    @property
    def apis(self) -> tuple[str, ...]:
        """The names of its APIs, sorted."""
        return tuple(sorted(self._ranges))

    def versions(self, api: str) -> Versions:
        """The versions of an API in the release, unstable ones too; none if it lacks the API."""
        return self._ranges.get(api, NONE)

    def unstable(self, api: str) -> Versions:
        """Those versions of an API that a broker offers only if configured to."""
        return self._unstable.get(api, NONE)


def apis_of(messages: Iterable[Message]) -> tuple[Api, ...]:
    """Pair requests and responses, in the order of their keys."""
    pairs: dict[int, dict[str, Message]] = {}
    for message in messages:
        if message.api_key is not None and message.type in TYPES_WITH_FRAME:
            pairs.setdefault(message.api_key, {})[message.type] = message
    return tuple(
        Api(key, naming.api_name(next(iter(pairs[key].values())).name), pairs[key])
        for key in sorted(pairs)
    )


def releases_of(releases: Releases | None) -> tuple[Release, ...]:
    """List the releases, oldest first; none if the schemas come without a releases.json."""
    if releases is None:
        return ()
    return tuple(
        Release(name, ranges, releases.unstable.get(name, {}))
        for name, ranges in releases.ranges.items()
    )
