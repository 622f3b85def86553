"""Which quota applies to a client (KIP-13, KIP-546, KIP-612), and the keys of quotas.

The most specific entity that has the quota applies; a name of None is the default of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .image import QuotaEntity

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
CONTROLLER_MUTATION: Final = "controller_mutation_rate"
CONNECTION_CREATION: Final = "connection_creation_rate"
Who = tuple[str | None, str | None]
"""(user, client id): what is counted together."""
Quotas = Mapping[QuotaEntity, Mapping[str, float]]


def quota_of_client(
    quotas: Quotas, key: str, user: str, client_id: str
) -> tuple[Who, float] | None:
    """Return the quota that applies to a client, and with whom it is shared; None without one."""
    for entity, who in _entities(user, client_id):
        quota = quotas.get(entity, {}).get(key)
        if quota is not None:
            return who, quota
    return None


def quota_of_address(quotas: Quotas, address: str) -> float | None:
    """Return how many connections an address may open per second; None for any number."""
    for name in (address, None):
        quota = quotas.get(frozenset({("ip", name)}), {}).get(CONNECTION_CREATION)
        if quota is not None:
            return quota
    return None


def _entities(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Who]]:
    """Yield what a quota may be of, the most specific first."""
    for name in (user, None):
        for client in (client_id, None):
            yield frozenset({("user", name), ("client-id", client)}), (user, client_id)
        yield frozenset({("user", name)}), (user, None)
    for client in (client_id, None):
        yield frozenset({("client-id", client)}), (None, client_id)
