"""What the listeners of a node support: by the release, or all that its machines have."""

from __future__ import annotations

from functools import cache

from ...broker.apis import Listener, SupportedApis, client_apis, served_on
from ...broker.releases import LATEST, Versions, versions_of
from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...raft import VERSIONS as QUORUM_VERSIONS
from ..config import NodeConfig


def listener_apis(config: NodeConfig, listener: str, zookeeper: bool = False) -> SupportedApis:
    """Return what a listener supports. zookeeper: that of clients has APIs of brokers, too.

    Brokers have the newest versions for each other, on a listener of their own if there is one; so
    have controllers.
    """
    if listener == config.controller_listener:
        return controller_apis(config.release)
    release = LATEST if is_between_brokers(config, listener) else config.release
    return client_apis(release, zookeeper)


def is_between_brokers(config: NodeConfig, listener: str) -> bool:
    """Return whether a listener is one that clients do not use."""
    return listener == config.inter_broker_listener and len(config.broker_listeners) > 1


@cache
def controller_apis(release: str) -> SupportedApis:
    """Return what controllers support: the newest versions, and those that brokers forward.

    release: of the brokers.
    """
    versions = {key: _controller_versions(key, release) for key in served_on(Listener.CONTROLLER)}
    versions[ApiKey.API_VERSIONS] = versions_of(LATEST)[ApiKey.API_VERSIONS]
    return SupportedApis(LATEST, versions, versions)


def _controller_versions(key: ApiKey, release: str) -> Versions:
    """Return the versions of a release and of newer ones, of those that the quorum has."""
    info = REGISTRY.request(key)
    assert info is not None
    newest, quorum = versions_of(LATEST)[key], QUORUM_VERSIONS.get(info.name)
    oldest = min(newest.first, versions_of(release).get(key, newest).first)
    have = Versions(oldest, newest.last)
    return have if quorum is None else have & Versions(*quorum)
