"""Who validates the tokens of a listener with OAUTHBEARER: what its keys say, and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from ...configs import BROKER_CONFIGS, list_items, prefixed
from ...sasl.endpoints import HttpEndpoint
from ...sasl.oauthbearer import OAUTHBEARER
from .jaas import module_of
from .jwt import TokenValidator
from .listeners import listener_settings
from .oauthbearer import key_endpoint, token_validator
from .protocols import SecurityProtocol

if TYPE_CHECKING:
    from .signed_tokens import KeySource

ENABLED: Final = "sasl.enabled.mechanisms"
REFRESH_MS: Final = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
BACKOFF_MS: Final = "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"
LONGEST_BACKOFF_MS: Final = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"


class EndpointSettings(NamedTuple):
    """A server with keys, and when to fetch them.

    longest_backoff_s: how long to retry before the keys are left as they are.
    """

    endpoint: HttpEndpoint
    refresh_s: float
    backoff_s: float
    longest_backoff_s: float


def values_of(static: Mapping[str, str], listener: str) -> Callable[[str], str]:
    """Return the function from a key to its value for a listener, "" if it has none."""

    def value(name: str) -> str:
        own = (prefixed(listener, name, OAUTHBEARER), prefixed(listener, name), name)
        default = BROKER_CONFIGS[name].default or ""
        return next((static[key] for key in own if key in static), default)

    return value


def validator_of(
    static: Mapping[str, str],
    listener: str,
    sources: Mapping[str, KeySource] = MappingProxyType({}),
) -> TokenValidator:
    """Return the validator of a listener. static: the keys that are set.

    sources: of the keys that servers have, by listener. Raises ValueError, which names the key;
    MissingPackage.
    """
    module = module_of(static, listener, OAUTHBEARER)
    options = {} if module is None else module.options
    try:
        return token_validator(values_of(static, listener), options, sources.get(listener))
    except ValueError as error:
        raise ValueError(f"listener {listener}: {error}") from None


def check_tokens(static: Mapping[str, str]) -> None:
    """Raise ValueError, which names the key, for listeners whose tokens cannot be validated."""
    for name in _listeners(static):
        validator_of(static, name)


def key_endpoints(static: Mapping[str, str]) -> dict[str, EndpointSettings]:
    """Return the servers that have the keys of listeners, by listener."""
    endpoints: dict[str, EndpointSettings] = {}
    for name in _listeners(static):
        value = values_of(static, name)
        endpoint = key_endpoint(value)
        if isinstance(endpoint, HttpEndpoint):
            times = (int(value(key)) / 1000 for key in (REFRESH_MS, BACKOFF_MS, LONGEST_BACKOFF_MS))
            endpoints[name] = EndpointSettings(endpoint, *times)
    return endpoints


def _listeners(static: Mapping[str, str]) -> list[str]:
    """List the listeners with OAUTHBEARER."""
    settings = listener_settings(static)
    names = [each.name for each in settings.listeners if settings.protocol(each.name).has_sasl]
    enabled = [
        (name, static.get(prefixed(name, ENABLED)) or static.get(ENABLED, ""))
        for name in names or [SecurityProtocol.SASL_PLAINTEXT.name]
    ]
    return [name for name, mechanisms in enabled if OAUTHBEARER in list_items(mechanisms)]
