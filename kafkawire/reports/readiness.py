"""Clients held against a Kafka release.

Law: a call counts against a client only if an earlier release took it and the target does not; one
that is newer than the target is the client's to negotiate. Who cannot be judged is said, with the
reason.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkawire.messages.api_key import ApiKey
from kafkawire_codegen.releases import Releases
from kafkawire_codegen.versions import Versions

from .clients import Client, Clients

HELLO: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""Calls that say nothing of what a client will use."""

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
"""Calls that only brokers and controllers make: they are what is upgraded."""


class Call(NamedTuple):
    """Calls that the target refuses. takes: the versions it takes, None for none of the API.
    offered: the newest that the broker spoken to takes now, where it said so.
    """

    api_key: int
    name: str
    version: int
    requests: int
    takes: Versions | None
    offered: int | None

    @property
    def bound(self) -> bool:
        """Whether the broker spoken to takes no version now that the target takes."""
        if self.offered is None or self.takes is None:
            return False
        return self.offered < self.takes.low

    def json(self) -> dict[str, Any]:
        """Make the JSON form."""
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
    """A client and what is held against it. reason: why it could not be judged."""

    client: Client
    refused: tuple[Call, ...] = ()
    reason: str = ""


class Judgement(NamedTuple):
    """All clients."""

    not_ready: list[Verdict]
    ready: list[Verdict]
    unjudged: list[Verdict]


def judge(clients: Clients, releases: Releases, target: str) -> Judgement:
    """Hold the clients of a capture against a release."""
    made = Judgement([], [], [])
    for client in clients.all:
        reason = _not_judged_reason(client)
        refused = () if reason else _refused(client, clients, releases, target)
        kind = made.unjudged if reason else made.not_ready if refused else made.ready
        kind.append(Verdict(client, refused, reason))
    for connections, count in clients.undecoded.most_common():
        many = "a connection" if count == 1 else f"{count} connections"
        reason = f"{many} to {connections.broker}: {connections.reason}"
        made.unjudged.append(Verdict(Client(None, connections.address, None), reason=reason))
    return made


def _not_judged_reason(client: Client) -> str:
    """Say why a client cannot be judged; nothing if it can."""
    keys = {call.api_key for call in client.calls}
    if keys & BROKERS:
        return "a broker or a controller, which is what is upgraded"
    if not keys - HELLO:
        return "it called nothing but " + (" and ".join(client.apis()) or "what cannot be read")
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
    """Whether a release does not take a version that one before it took."""
    takes = releases.of(target).get(api_name)
    if takes is not None:
        return version < takes.low
    known = list(releases.ranges)
    return any(api_name in releases.ranges[release] for release in known[: known.index(target)])


def _offered(client: Client, clients: Clients, api_key: int) -> int | None:
    """Say the newest version that the brokers a client spoke to take, where they said so."""
    offered = [
        clients.offers[broker][api_key]
        for broker in client.brokers
        if api_key in clients.offers.get(broker, {})
    ]
    return max(offered, default=None)
