"""Checks the settings that say who a client is, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...configs import listener_key
from .authorizer import authorizer_of
from .jaas import check_jaas
from .listener_tokens import check_tokens
from .tls_principal import DEFAULT, MAPPING_RULES, mapping_rules

ENGINE_FACTORY: Final = "ssl.engine.factory.class"
DEFAULT_ENGINE_FACTORY: Final = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"


def check_security(static: Mapping[str, str]) -> None:
    """Raise ValueError for unknown classes, and invalid rules, logins, listeners or keys.

    MissingPackage for signed tokens without the extra `oauth`.
    """
    authorizer_of(static)
    mapping_rules(static.get(MAPPING_RULES, DEFAULT))
    for name, value in static.items():
        of_listener = listener_key(name)
        if of_listener is not None and of_listener.name == MAPPING_RULES:
            mapping_rules(value)
        name = name if of_listener is None else of_listener.name
        if name == ENGINE_FACTORY and value != DEFAULT_ENGINE_FACTORY:
            raise ValueError(f"{name}={value!r}: expected {DEFAULT_ENGINE_FACTORY}")
    check_jaas(static)
    check_tokens(static)
