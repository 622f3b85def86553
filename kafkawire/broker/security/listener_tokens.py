"""Who validates the tokens of a listener with OAUTHBEARER: what its keys say, and its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...configs import BROKER_CONFIGS, list_items, prefixed
from ...sasl.oauthbearer import OAUTHBEARER
from .jaas import module_of
from .jwt import TokenValidator
from .listeners import listener_settings
from .oauthbearer import token_validator
from .protocols import SecurityProtocol

ENABLED: Final = "sasl.enabled.mechanisms"


def validator_of(static: Mapping[str, str], listener: str) -> TokenValidator:
    """Return the validator of a listener. static: the keys that are set.

    Raises ValueError, which names the key; MissingPackage.
    """

    def value(name: str) -> str:
        own = (prefixed(listener, name, OAUTHBEARER), prefixed(listener, name), name)
        default = BROKER_CONFIGS[name].default or ""
        return next((static[key] for key in own if key in static), default)

    module = module_of(static, listener, OAUTHBEARER)
    try:
        return token_validator(value, {} if module is None else module.options)
    except ValueError as error:
        raise ValueError(f"listener {listener}: {error}") from None


def check_tokens(static: Mapping[str, str]) -> None:
    """Raise ValueError, which names the key, for listeners whose tokens cannot be validated."""
    settings = listener_settings(static)
    names = [each.name for each in settings.listeners if settings.protocol(each.name).has_sasl]
    for name in names or [SecurityProtocol.SASL_PLAINTEXT.name]:
        enabled = static.get(prefixed(name, ENABLED)) or static.get(ENABLED, "")
        if OAUTHBEARER in list_items(enabled):
            validator_of(static, name)
