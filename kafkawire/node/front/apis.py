"""What the listeners of a node support: by the release, or all that its machines have."""

from __future__ import annotations

from typing import Final

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
        return CONTROLLER_APIS
    release = LATEST if is_between_brokers(config, listener) else config.release
    return client_apis(release, zookeeper)


def is_between_brokers(config: NodeConfig, listener: str) -> bool:
    """Return whether a listener is one that clients do not use."""
    return listener == config.inter_broker_listener and len(config.broker_listeners) > 1


def _controller_apis() -> SupportedApis:
    versions = {key: _controller_versions(key) for key in served_on(Listener.CONTROLLER)}
    versions[ApiKey.API_VERSIONS] = versions_of(LATEST)[ApiKey.API_VERSIONS]
    return SupportedApis(LATEST, versions, versions)


def _controller_versions(key: ApiKey) -> Versions:
    """Return the versions of the newest release, of those that the quorum has."""
    info = REGISTRY.request(key)
    assert info is not None
    newest, quorum = versions_of(LATEST)[key], QUORUM_VERSIONS.get(info.name)
    return newest if quorum is None else newest & Versions(*quorum)


CONTROLLER_APIS: Final = _controller_apis()
