"""Which version of which API to speak to a broker.

Law: the newest version that the broker, this build and the request all have; a version that Kafka
does not promise to keep is never chosen.

    connected ─▶ ApiVersions 4 ─▶ answered: its table
                    │ error 35: again, in the newest version its answer names (KIP-511)
                    ▼ closed the connection: the next one begins with ApiVersions 0, and so by turns

A broker that has answered once is asked in the newest version for good. One that never answers
(Kafka before 0.10, of 2016) has no version of Produce and Fetch that this client speaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...messages.api_versions_response import ApiVersion
from ..requests import Body


class Opening(IntEnum):
    """How a connection begins: with ApiVersions in which version."""

    NEWEST = 0
    OLDEST = 1

    @property
    def other(self) -> Opening:
        """How to begin after the broker closed on this one."""
        return Opening(1 - self)


FIRST_TRY: Final = 4
"""Of ApiVersions: newer ones add nothing to the table of versions."""


class Range(NamedTuple):
    """Versions, both ends included."""

    lowest: int
    highest: int


@cache
def ours(api: ApiKey) -> Range:
    """Say which versions of an API this build speaks: those it has of request and response."""
    request, response = REGISTRY.request(api), REGISTRY.response(api)
    assert request is not None
    assert response is not None
    unstable = 1 if request.latest_unstable else 0
    return Range(max(request.first, response.first), min(request.last, response.last) - unstable)


class Versions:
    """What one broker speaks."""

    def __init__(self, table: Mapping[int, Range]) -> None:
        self._table = table

    @classmethod
    def of(cls, offered: Iterable[ApiVersion]) -> Versions:
        """Take the table of an ApiVersions response."""
        return cls({row.api_key: Range(row.min_version, row.max_version) for row in offered})

    def offered(self, api: ApiKey) -> Range | None:
        """Give what the broker has of an API; None where it has it not."""
        return self._table.get(api)

    def choose(self, api: ApiKey, body: Body) -> int | None:
        """Choose the version for a request; None where there is none in common."""
        theirs = self._table.get(api)
        if theirs is None:
            return None
        mine = ours(api)
        lowest = max(theirs.lowest, mine.lowest, body.lowest)
        highest = min(theirs.highest, mine.highest, body.highest)
        return highest if lowest <= highest else None


NONE: Final = Versions({})
