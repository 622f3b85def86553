"""Options of Kafka's own tools that are spelt differently here, with the spelling here.

A sentence names only options and verbs that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _shown(*options: str, what: str = "this") -> dict[str, str]:
    """Say of options that they are the default here."""
    return dict.fromkeys(options, f"leave it out: {what} is shown without it")


def _like(text: str, *options: str) -> dict[str, str]:
    return dict.fromkeys(options, text)


def _setting(**keys: str) -> dict[str, str]:
    """Name the client's configuration key of each option."""
    return {f"--{name.replace('_', '-')}": f"use -X {key}" for name, key in keys.items()}


CONFIG_FILE: Final = "use --config FILE"
CONFIG_KEY: Final = "use -X KEY=VALUE"
EVERYWHERE: Final[Mapping[str, str]] = {
    **_like(CONFIG_FILE, "--command-config", "--consumer-config", "--consumer.config"),
    **_like(CONFIG_FILE, "--producer.config"),
    **_like(CONFIG_KEY, "--command-property", "--consumer-property", "--producer-property"),
    **_like("use -b HOST:PORT, of a broker", "--bootstrap-controller", "--zookeeper"),
    **_like("use -b HOST:PORT", "--broker-list"),
    "--version": "see kafkawire --version",
    **_like("use -y", "--force"),
    "--timeout": "use -X default.api.timeout.ms=MS",
}
"""For all verbs of clusters."""

SHOWN: Final = _shown("--describe", "--list")
"""For those that show something."""

FORMATS: Final = "use --format, with %k for keys, --keys and --values"
READS: Final = "topics are arguments: kafkawire consume TOPIC"
SENDS: Final = "the topic is an argument: kafkawire produce TOPIC"
LINES: Final = "use --key-separator, --values or --whole-input"
ENTITY: Final = (
    "use --topic, --broker, --group or --client-metrics NAME; of users, kafkawire quotas"
)
ENTITY_QUOTA: Final = "use --user, --client or --ip"
UNHEALTHY: Final = "see kafkawire cluster -b HOST:PORT"
FEATURE: Final = "use --upgrade or --downgrade NAME=LEVEL"

OF_VERB: Final[Mapping[str, Mapping[str, str]]] = {
    "topics": {
        "--partitions": "use --create or --alter NAME:PARTITIONS",
        "--set": "use --alter NAME --topic-config KEY=VALUE",
        "--add-config": "use --alter NAME --topic-config KEY=VALUE",
        **_like(UNHEALTHY, "--at-min-isr-partitions", "--under-min-isr-partitions"),
        **_like(UNHEALTHY, "--unavailable-partitions", "--under-replicated-partitions"),
        "--topics-with-overrides": "use kafkawire configs -b HOST:PORT",
        "--exclude-internal": "use --format json and select",
        **_like("not supported: see the exit code", "--if-exists", "--if-not-exists"),
        "--replica-assignment": "use kafkawire reassign --execute, once the topic is created",
        "--topic-id": "use --topic NAME",
        "--topic-id-type": "use --topic NAME",
        "--partition-size-limit-per-response": "not needed here",
    },
    "consume": {
        "--from-beginning": "leave it out: it is the default; see --offset",
        "--max-messages": "use --max-records N",
        "-c": "use --max-records N",
        "-o": "use --offset",
        "-G": "use --group",
        "--timeout-ms": "use --exit-at-end",
        "--isolation-level": "use --isolation",
        **_like(READS, "--topic", "-t", "--include", "--whitelist"),
        **_like(FORMATS, "--property", "--formatter", "--formatter-config", "--formatter-property"),
        **_like("use --keys FORMAT", "--key-deserializer"),
        **_like("use --values FORMAT", "--value-deserializer"),
        "--skip-message-on-error": "leave it out: what --values cannot decode is shown as an error",
        **_like("not supported: records are accepted", "--reject", "--release"),
        "--reject-message-on-error": "not supported: records are accepted",
        "--enable-systest-events": "not supported",
    },
    "produce": {
        **_like(SENDS, "--topic", "-t"),
        **_like(LINES, "--property", "--line-reader", "--reader-config", "--reader-property"),
        "--sync": "use -X max.in.flight.requests.per.connection=1",
        **_setting(
            compression_codec="compression.type=CODEC",
            request_required_acks="acks=ACKS",
            batch_size="batch.size=BYTES",
            timeout="linger.ms=MS",
            message_send_max_retries="retries=N",
            retry_backoff_ms="retry.backoff.ms=MS",
            request_timeout_ms="request.timeout.ms=MS",
            max_block_ms="max.block.ms=MS",
            max_memory_bytes="buffer.memory=BYTES",
            max_partition_memory_bytes="batch.size=BYTES",
            metadata_expiry_ms="metadata.max.age.ms=MS",
            socket_buffer_size="send.buffer.bytes=BYTES",
        ),
    },
    "groups": {
        **_shown("--members", "--offsets", "--state", "--verbose", what="this, of a --group,"),
        **_shown("--all-groups", what="every group"),
        "--export": "use --dry-run --format json",
        "--from-file": "not supported: use --to-offset with --topic NAME:PARTITION",
        "--type": "use --format json and select",
        "--validate-regex": "not supported",
    },
    "configs": {
        **_like(ENTITY, "--entity-type", "--entity-name", "--user", "--client", "--ip"),
        "--entity-default": "use --broker-defaults",
        "--user-defaults": "use kafkawire quotas --user-defaults",
        "--client-defaults": "use kafkawire quotas --client-defaults",
        "--ip-defaults": "use kafkawire quotas --ip-defaults",
        **_like("use --add-config KEY=VALUE", "--set", "--alter"),
    },
    "quotas": {
        **_like(ENTITY_QUOTA, "--entity-type", "--entity-name"),
        "--entity-default": "use --user-defaults, --client-defaults or --ip-defaults",
        **_like("use --add-config KEY=VALUE", "--set", "--alter"),
    },
    "acls": {
        "--allow-principal": "use --principal",
        "--deny-principal": "use --deny --principal",
        "--allow-host": "use --host",
        "--deny-host": "use --deny --host",
        "--resource-pattern-type": "use --prefixed; literal is the default",
        "--producer": "use --operation WRITE --operation DESCRIBE",
        "--consumer": "use --operation READ --operation DESCRIBE",
        "--idempotent": "use --cluster --operation IDEMPOTENT_WRITE",
        **_like("not supported", "--delegation-token", "--user-principal"),
    },
    "reassign": {
        "--replica-alter-log-dirs-throttle": "use kafkawire log-dirs to move between directories",
        "--disable-rack-aware": "not supported: racks are respected",
        "--disallow-replication-factor-change": "not supported: see --dry-run",
    },
    "log-dirs": {
        "--broker-list": "use --broker ID",
        "--topic-list": "use --topic NAME",
    },
    "tokens": {"--hmac": "use the id of the token: --renew ID, --expire ID"},
    "features": _like(FEATURE, "--feature", "--metadata", "--release-version"),
    "transactions": {
        "--duration-filter": "use --longer-than SECONDS",
        "--max-transaction-timeout": "use --older-than SECONDS",
        **_like("use --hanging --abort-hanging", "--coordinator-epoch", "--start-offset"),
        **_like("use --hanging --abort-hanging", "--producer-id", "--producer-epoch"),
        "--partition": "use --topic NAME",
        "--broker-id": "use --hanging",
        "--transactional-id-pattern": "use --pattern REGEX",
    },
}
"""Verb -> option of the tool whose task it has -> what to type here."""


LIVE: Final = frozenset(OF_VERB) | {"cluster", "users"}


def spelling(verb: str, option: str) -> str:
    """Return `; ` and what to type in place of an option of Kafka's tools; "" if it is none."""
    shown = {} if verb in ("consume", "produce") else SHOWN
    tables = (OF_VERB.get(verb, {}), EVERYWHERE, shown) if verb in LIVE else ()
    text = next((table[option] for table in tables if option in table), None)
    return "" if text is None else f"; {text}"


EXTRA: Final[Mapping[str, str]] = {
    "produce": "use --input FILE",
    "configs": "use --topic, --broker, --group or --client-metrics NAME",
    "quotas": ENTITY_QUOTA,
    "users": "use --user NAME",
    "acls": "use --topic, --group or --principal NAME",
    "reassign": "use --topic NAME",
    "log-dirs": "use --topic NAME or --broker ID",
    "features": "use --upgrade or --downgrade NAME=LEVEL",
    "codegen": "use --schemas SOURCE",
    "serve": "use --topic NAME",
}
"""Verb -> what to type in place of an argument that it does not have."""


def extra_argument(verb: str) -> str:
    """Return `; ` and what to type in place of an argument that is too much; "" if unknown."""
    return f"; {EXTRA[verb]}" if verb in EXTRA else ""
