"""Checks the settings that say who a client is, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping

from .authorizer import authorizer_of
from .tls_principal import DEFAULT, MAPPING_RULES, mapping_rules


def check_security(static: Mapping[str, str]) -> None:
    """Raise ValueError for an unknown authorizer, or rules for principals that are not valid."""
    authorizer_of(static)
    mapping_rules(static.get(MAPPING_RULES, DEFAULT))
