"""The versions of the APIs between brokers, by the release whose cluster they show.

Law: a broker sends the newest version of its release, as with its inter.broker.protocol.version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...messages.api_key import ApiKey
from ..releases import Offer, parse

KEYS: Final = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
)
"""The APIs between brokers of such a cluster, in the order of `VERSIONS`."""


def _offer(*texts: str) -> Offer:
    return dict(zip(KEYS, map(parse, texts), strict=True))


VERSIONS: Final[Mapping[str, Offer]] = {
    "2.2": _offer("0-2", "0-1", "0-5", "0-2"),
    "2.3": _offer("0-2", "0-1", "0-5", "0-2"),
    "2.4": _offer("0-4", "0-2", "0-6", "0-3"),
    "2.5": _offer("0-4", "0-2", "0-6", "0-3"),
    "2.6": _offer("0-4", "0-3", "0-6", "0-3"),
    "2.7": _offer("0-4", "0-3", "0-6", "0-3"),
}
"""Release -> the versions of `KEYS`."""


def inter_broker(release: str) -> Offer:
    """Return the versions of a release. ValueError for one whose brokers need no ZooKeeper."""
    if release not in VERSIONS:
        raise ValueError(
            f"no ZooKeeper in release {release}: expected one of {', '.join(VERSIONS)}"
        )
    return VERSIONS[release]
