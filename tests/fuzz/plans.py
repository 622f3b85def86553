"""Plans over all APIs, as a broker with every version offers them."""

from __future__ import annotations

from typing import Final

from kafkawire.fuzz.cases import Plan
from kafkawire.fuzz.names import Names
from kafkawire.messages import REGISTRY
from kafkawire.messages.api_key import ApiKey

PREFIX: Final = "fuzz-test-7"
NAMES: Final = Names(PREFIX, f"{PREFIX}-0", bytes(range(16)))


def versions() -> dict[ApiKey, range]:
    """Return every version of every request."""
    return {
        api: range(info.first, info.last + 1)
        for api in ApiKey
        if (info := REGISTRY.request(api)) is not None
    }


def plan(seed: int = 7, *apis: ApiKey) -> Plan:
    """Return a plan for APIs; for all where none is named."""
    return Plan(
        seed, {api: each for api, each in versions().items() if not apis or api in apis}, NAMES
    )
