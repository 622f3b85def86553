"""What the listeners of a node support: by the release, or all that its machines have."""

from __future__ import annotations

from typing import Final

from ...broker.apis import Listener, SupportedApis, served_on, supported_apis
from ...broker.releases import LATEST, Versions, all_versions, versions_of
from ...messages import REGISTRY
from ...messages.api_key import ApiKey
from ...raft import VERSIONS as QUORUM_VERSIONS
from ..config import NodeConfig


def listener_apis(config: NodeConfig, listener: str) -> SupportedApis:
    """Return what a listener supports.

    Brokers have the newest versions for each other, on a listener of their own if there is one; so
    have controllers.
    """
    if listener == config.controller_listener:
        return CONTROLLER_APIS
    own = listener == config.inter_broker_listener and len(config.broker_listeners) > 1
    return supported_apis(LATEST if own else config.release, served_on(Listener.BROKER))


def _controller_apis() -> SupportedApis:
    versions = {key: _controller_versions(key) for key in served_on(Listener.CONTROLLER)}
    versions[ApiKey.API_VERSIONS] = versions_of(LATEST)[ApiKey.API_VERSIONS]
    return SupportedApis(LATEST, versions, versions)


def _controller_versions(key: ApiKey) -> Versions:
    """Return the versions that the quorum has of an API, or all."""
    info = REGISTRY.request(key)
    assert info is not None
    quorum = QUORUM_VERSIONS.get(info.name)
    return all_versions(key) if quorum is None else Versions(*quorum)


CONTROLLER_APIS: Final = _controller_apis()
