"""Says which parts of messages are secret.

Law: as Kafka decides (ConfigDef.Type.PASSWORD, `maybeSensitive` of the broker's configs): a config
whose type is unknown is treated as a secret. What is not certain to be harmless is hidden.

    fields    credentials by themselves: tokens, passwords, keys, salts, messages in an Envelope
    configs   a name and a value; the name and `isSensitive` decide
    bytes     what could not be decoded of an API that carries secrets, or of an unknown one
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from .config_names import SHOWN_CONFIGS

SECRET_FIELDS: Final = frozenset(
    {
        "authBytes",
        "hmac",
        "password",
        "requestData",
        "responseData",
        "salt",
        "saltedPassword",
        "serverKey",
        "storedKey",
    }
)
"""Fields of Kafka's JSON form that hold credentials, or whole messages that may."""

CONFIG_STRUCTS: Final = frozenset(
    {
        "AlterableConfig",
        "ConfigRecord",
        "CreatableTopicConfig",
        "CreatableTopicConfigs",
        "DescribeConfigsResourceResult",
        "DescribeConfigsSynonym",
    }
)
"""Structs with the name and the value of a config."""

SECRET_APIS: Final = frozenset(
    {
        "AlterConfigs",
        "AlterUserScramCredentials",
        "CreateDelegationToken",
        "CreateTopics",
        "DescribeConfigs",
        "DescribeDelegationToken",
        "Envelope",
        "ExpireDelegationToken",
        "FetchSnapshot",
        "IncrementalAlterConfigs",
        "RenewDelegationToken",
        "SaslAuthenticate",
    }
)
"""APIs whose requests or responses may carry secrets."""

SECRET_MESSAGES: Final = frozenset(
    {f"{api}{kind}" for api in SECRET_APIS for kind in ("Request", "Response")}
    | {"ConfigRecord", "DelegationTokenRecord", "UserScramCredentialRecord"}
)
"""Messages that may carry secrets."""


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


SECRET_ATTRIBUTES: Final = frozenset({*map(_snake, SECRET_FIELDS), "unaligned_records"})
"""The same fields as Python names them, and the records of a snapshot of the metadata."""

SECRET_MODULES: Final = frozenset(map(_snake, SECRET_MESSAGES))
"""The modules of those messages, whose structs may carry them."""

SNAPSHOT_MODULE: Final = "fetch_snapshot_response"
"""The module of the response that carries records of the metadata topic alone."""

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
METADATA_TOPICS: Final = frozenset({METADATA_TOPIC, METADATA_TOPIC_ID})
"""Name and id (KIP-516: the uuid 0-1) of the topic whose records hold configs and SCRAM keys."""

_METADATA_BYTES: Final = (METADATA_TOPIC.encode(), bytes(15) + b"\x01")

_LISTENER_PREFIXES: Final = (
    re.compile(r"^listener\.name\.[^.]+\."),
    re.compile(r"^listener\.name\.[^.]+\.[^.]+\."),
)
"""What dynamic configs of a listener, and of a SASL mechanism there, have in front (KIP-226)."""

_SECRET_NAME: Final = re.compile(
    r"passw|passphrase|secret|credential|token|jaas|private|certificate|\bkeys?\b|apikey|accesskey"
)
"""What names of secrets have in them."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9._$-]{0,256}")

_HARMLESS: Final = frozenset(
    {"true", "false", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"}
)
"""Values that are no secret under any name: truth values, and the levels of loggers."""


@lru_cache(1 << 12)
def is_secret_config(name: str, sensitive: bool | None) -> bool:
    """Whether the value of a config is secret.

    sensitive: `isSensitive` as the broker says it; None where a message does not.
    """
    if sensitive:
        return True
    names = [name, *(prefix.sub("", name, count=1) for prefix in _LISTENER_PREFIXES)]
    if not SHOWN_CONFIGS.isdisjoint(names):
        return False
    return sensitive is None or _SECRET_NAME.search(name.lower()) is not None


def placeholder(count: int, unit: str) -> str:
    """Write what stands in the place of so many bytes or characters."""
    return f"(redacted, {count} {unit})" if count == 1 else f"(redacted, {count} {unit}s)"


def hides_value(struct: object) -> bool:
    """Whether the value of one of CONFIG_STRUCTS is hidden."""
    config: Any = struct
    value = config.value
    if value is None or value in _HARMLESS:
        return False
    return is_secret_config(config.name, getattr(config, "is_sensitive", None))


def hides_name(struct: object) -> bool:
    """Whether the name of one of CONFIG_STRUCTS is hidden: it is not a name, but misread bytes."""
    config: Any = struct
    return not is_config_name(config.name)


def is_config_name(name: str) -> bool:
    """Whether a text can be the name of a config, or of a logger."""
    return _PLAIN_NAME.fullmatch(name) is not None


def may_hold_secret(api_name: str | None, is_known_version: bool, raw: bytes) -> bool:
    """Whether the bytes of a body, or of a frame, that was not decoded may hold a secret.

    api_name: None where it is not known whose bytes they are; is_known_version: whether the API has
    the version that the header names. A raw token that a SaslHandshake of version 0 announced looks
    like the request of an unknown API, or of an unknown version, where the handshake was not seen.
    """
    if api_name is None or not is_known_version or api_name in SECRET_APIS:
        return True
    return api_name == "Fetch" and names_metadata(raw)


def names_metadata(raw: bytes) -> bool:
    """Whether the name or the id of the metadata topic is somewhere in these bytes."""
    return any(topic in raw for topic in _METADATA_BYTES)
