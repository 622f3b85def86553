"""Negotiates API versions with a broker.

The newest version that broker, this build and request have in common; a version that Kafka
marks as unstable is never chosen.

    connected ─▶ ApiVersions 4 ─▶ response: its table
                    │ error 35: retry in the newest version of the response (KIP-511)
                    ▼ closed by the broker: the next connection tries ApiVersions 0, alternating

A broker that responded once gets the newest version from then on. One that never responds
(Kafka before 0.10, of 2016) supports no version of Produce and Fetch that this client has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...messages.api_versions_response import ApiVersion, ApiVersionsResponse
from ..cluster import FinalizedFeatures
from ..requests import Body


class Opening(IntEnum):
    """Which version of ApiVersions a connection sends first."""

    NEWEST = 0
    OLDEST = 1

    @property
    def other(self) -> Opening:
        """The strategy after the broker closed the connection on this one."""
        return Opening(1 - self)


FIRST_TRY: Final = 4
"""Version of ApiVersions; newer ones add nothing to the table of versions."""
NO_VERSIONS: Final = (
    "no response to ApiVersions {}; does the broker expect TLS (security.protocol SSL), or is it "
    "older than 0.10?"
)
EXPECTS_TLS: Final = "the broker expects TLS: set security.protocol to SSL or SASL_SSL"
OTHER_SERVERS: Final = {
    b"\x15\x03": EXPECTS_TLS,  # an alert (RFC 8446, 5.1)
    b"HTTP/": "an HTTP server answers, not a Kafka broker",
}
"""How answers to ApiVersions begin that are not Kafka's, and what that means."""


class Range(NamedTuple):
    """A range of versions, both ends included."""

    lowest: int
    highest: int


@cache
def ours(api: ApiKey) -> Range:
    """Return the versions of an API that this build has for request and response."""
    request, response = REGISTRY.request(api), REGISTRY.response(api)
    assert request is not None
    assert response is not None
    unstable = 1 if request.latest_unstable else 0
    return Range(max(request.first, response.first), min(request.last, response.last) - unstable)


class Versions:
    """The versions that one broker supports."""

    def __init__(self, table: Mapping[int, Range]) -> None:
        self._table = table

    @classmethod
    def of(cls, offered: Iterable[ApiVersion]) -> Versions:
        """Read the table of an ApiVersions response."""
        return cls({row.api_key: Range(row.min_version, row.max_version) for row in offered})

    def offered(self, api: ApiKey) -> Range | None:
        """Return the broker's versions of an API; None if it lacks the API."""
        return self._table.get(api)

    def choose(self, api: ApiKey, body: Body) -> int | None:
        """Choose the version for a request; None without a common version."""
        theirs = self._table.get(api)
        if theirs is None:
            return None
        mine = ours(api)
        lowest = max(theirs.lowest, mine.lowest, body.lowest)
        highest = min(theirs.highest, mine.highest, body.highest)
        return highest if lowest <= highest else None

    def why_none(self, api: ApiKey, body: Body) -> str:
        """Return why `choose` returned None."""
        theirs, mine = self.offered(api), ours(api)
        offered = f"{theirs.lowest} to {theirs.highest}" if theirs else "no version"
        lowest, highest = max(mine.lowest, body.lowest), min(mine.highest, body.highest)
        return f"{api.name}: the broker supports {offered}, required is {lowest} to {highest}"


def features_of(response: ApiVersionsResponse) -> FinalizedFeatures:
    """Return the finalized features of an ApiVersions response (KIP-584)."""
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    return FinalizedFeatures(response.finalized_features_epoch, levels)


NONE: Final = Versions({})
