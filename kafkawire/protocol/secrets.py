"""Decides which parts of messages are secret.

As in Kafka (ConfigDef.Type.PASSWORD, `maybeSensitive` of the broker's configs), a config of
unknown type is secret. When in doubt, a value is hidden.

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
"""Fields of Kafka's JSON form with credentials, or with whole messages that may contain some."""

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
"""The same fields by their Python names, and the records of a metadata snapshot."""

SECRET_MODULES: Final = frozenset(map(_snake, SECRET_MESSAGES))
"""The modules of those messages."""

SNAPSHOT_MODULE: Final = "fetch_snapshot_response"
"""The module of the response with records of the metadata topic only."""

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
METADATA_TOPICS: Final = frozenset({METADATA_TOPIC, METADATA_TOPIC_ID})
"""Name and id (KIP-516: the uuid 0-1) of the topic whose records hold configs and SCRAM keys."""

_METADATA_BYTES: Final = (METADATA_TOPIC.encode(), bytes(15) + b"\x01")

_LISTENER_PREFIXES: Final = (
    re.compile(r"^listener\.name\.[^.]+\."),
    re.compile(r"^listener\.name\.[^.]+\.[^.]+\."),
)
"""The prefix of dynamic configs of a listener and its SASL mechanisms (KIP-226)."""

_SECRET_NAME: Final = re.compile(
    r"passw|passphrase|secret|credential|token|jaas|private|certificate|\bkeys?\b|apikey|accesskey"
)
"""Parts of names that indicate secrets."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9._$-]{0,256}")

_HARMLESS: Final = frozenset(
    {"true", "false", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"}
)
"""Values that are never secret: booleans and log levels."""


@lru_cache(1 << 12)
def is_secret_config(name: str, sensitive: bool | None) -> bool:
    """Whether the value of a config is secret.

    sensitive: the broker's `isSensitive`; None if the message has none.
    """
    if sensitive:
        return True
    names = [name, *(prefix.sub("", name, count=1) for prefix in _LISTENER_PREFIXES)]
    if not SHOWN_CONFIGS.isdisjoint(names):
        return False
    return sensitive is None or _SECRET_NAME.search(name.lower()) is not None


def placeholder(count: int, unit: str) -> str:
    """Return the replacement of a secret of that many bytes or characters."""
    return f"(redacted, {count} {unit})" if count == 1 else f"(redacted, {count} {unit}s)"


def hides_value(struct: object) -> bool:
    """Whether the value of one of CONFIG_STRUCTS is hidden."""
    config: Any = struct
    value = config.value
    if value is None or value in _HARMLESS:
        return False
    return is_secret_config(config.name, getattr(config, "is_sensitive", None))


def hides_name(struct: object) -> bool:
    """Whether the name of one of CONFIG_STRUCTS is hidden, because it is misread bytes."""
    config: Any = struct
    return not is_config_name(config.name)


def is_config_name(name: str) -> bool:
    """Whether a text can be the name of a config, or of a logger."""
    return _PLAIN_NAME.fullmatch(name) is not None


def may_hold_secret(api_name: str | None, is_known_version: bool, raw: bytes) -> bool:
    """Whether the bytes of an undecoded body or frame may contain a secret.

    api_name: None if the API is unknown; is_known_version: whether the API has the version of the
    header. A raw SASL token whose SaslHandshake v0 is not in the capture looks like a request of an
    unknown API or version.
    """
    if api_name is None or not is_known_version or api_name in SECRET_APIS:
        return True
    return api_name == "Fetch" and names_metadata(raw)


def names_metadata(raw: bytes) -> bool:
    """Whether these bytes contain the name or id of the metadata topic."""
    return any(topic in raw for topic in _METADATA_BYTES)
