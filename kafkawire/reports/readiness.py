"""Checks whether clients are compatible with a Kafka release.

A client is not ready only if it uses an API version that an earlier release supported and the
target does not; versions newer than the target are negotiated down by the client. A client that
cannot be checked is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from kafkawire.messages.api_key import ApiKey
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.files import RELEASES
from kafkawire_codegen.releases import Releases, read
from kafkawire_codegen.versions import Versions

from .client import Client
from .clients import Clients

HELLO: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""APIs of connection setup, which do not show what a client uses."""

BROKERS: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)
"""APIs that only brokers and controllers use: they are upgraded themselves."""


class Call(NamedTuple):
    """Requests that the target does not support.

    takes: the supported versions, None if it does not support the API. offered: the highest version
    of the current broker, None if unknown.
    """

    api_key: int
    name: str
    version: int
    requests: int
    takes: Versions | None
    offered: int | None

    @property
    def bound(self) -> bool:
        """Whether the current broker and the target have no version in common."""
        if self.offered is None or self.takes is None:
            return False
        return self.offered < self.takes.low

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "api_key": self.api_key,
            "api_name": self.name,
            "api_version": self.version,
            "requests": self.requests,
            "target_min": None if self.takes is None else self.takes.low,
            "target_max": None if self.takes is None else self.takes.high,
            "broker_max": self.offered,
        }


class Verdict(NamedTuple):
    """A client and its unsupported requests. reason: why it could not be checked."""

    client: Client
    refused: tuple[Call, ...] = ()
    reason: str = ""


class Judgement(NamedTuple):
    """The verdicts of all clients."""

    not_ready: list[Verdict]
    ready: list[Verdict]
    unjudged: list[Verdict]


def judge(clients: Clients, releases: Releases, target: str) -> Judgement:
    """Check the clients of a capture against a release."""
    judgement = Judgement([], [], [])
    for client in clients.all:
        reason = _not_judged_reason(client)
        refused = () if reason else _refused(client, clients, releases, target)
        kind = judgement.unjudged if reason else judgement.not_ready if refused else judgement.ready
        kind.append(Verdict(client, refused, reason))
    judgement.not_ready.sort(key=lambda one: -sum(call.requests for call in one.refused))
    for connections, count in clients.undecoded.most_common():
        many = "1 connection" if count == 1 else f"{count} connections"
        reason = f"{many} to {connections.broker}: {connections.reason}"
        judgement.unjudged.append(Verdict(Client(None, connections.address, None), reason=reason))
    return judgement


def _not_judged_reason(client: Client) -> str:
    """Return why a client cannot be checked; empty if it can."""
    keys = {call.api_key for call in client.calls}
    if keys & BROKERS:
        return "a broker or controller, upgraded itself"
    if not keys - HELLO:
        apis = " and ".join(client.apis())
        return f"only {apis} requests captured" if apis else "no requests decoded"
    return ""


def _refused(client: Client, clients: Clients, releases: Releases, target: str) -> tuple[Call, ...]:
    return tuple(
        Call(
            call.api_key,
            call.api_name,
            call.api_version,
            client.calls[call],
            releases.of(target).get(call.api_name),
            _offered(client, clients, call.api_key),
        )
        for call in sorted(client.calls)
        if call.api_name is not None
        and no_longer(call.api_name, call.api_version, releases, target)
    )


def no_longer(api_name: str, version: int, releases: Releases, target: str) -> bool:
    """Whether a release no longer supports a version that an earlier one did."""
    takes = releases.of(target).get(api_name)
    if takes is not None:
        return version < takes.low
    names = list(releases.ranges)
    return any(api_name in releases.ranges[release] for release in names[: names.index(target)])


def first_without(api_name: str, version: int, releases: Releases) -> str | None:
    """Return the first release that no longer supports a version; None if all later ones do."""
    dropped = (one for one in releases.ranges if no_longer(api_name, version, releases, one))
    return next(dropped, None)


DROPPED: Final = 1024
"""Versions of APIs for which the release that drops them is kept."""


def dropped_by(releases: Releases) -> Callable[[str, int], str | None]:
    """Return `first_without` of releases, which clients of the same versions share."""
    return lru_cache(DROPPED)(partial(first_without, releases=releases))


def dropped_by_kafka() -> Callable[[str, int], str | None]:
    """Return `first_without` of Kafka's releases."""
    return dropped_by(read(schemas_dir() / RELEASES))


def _offered(client: Client, clients: Clients, api_key: int) -> int | None:
    """Return the highest version that the brokers of a client support, None if unknown."""
    offered = [clients.offered(broker, api_key) for broker in client.brokers]
    return max([version for version in offered if version is not None], default=None)
