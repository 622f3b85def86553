"""`kafkawire configs`: configurations of a live cluster: described, set, removed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kafkawire.protocol.secrets import is_secret_config

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import Form, FormOption
from ...live.changes import Change, ChangeOptions, ChangeReport, DryRunOption
from ...live.config_resources import (
    ADD,
    ALL_RESOURCES,
    NO_CONFIG_CHANGES,
    ConfigChanges,
    ResourceOptions,
    known_keys,
)
from ...live.unknown_names import (
    check_brokers,
    check_configs,
    similar_config,
    with_similar_topic,
)
from ...render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, ConfigEntry, ConfigResource

    Described = dict[ConfigResource, list[ConfigEntry]]

HIDDEN = "(hidden)"
LISTED = ("TOPIC", "BROKER", "GROUP", "CLIENT_METRICS")
"""Types of the resources that are shown if none is named."""


def configs(
    options: ClusterOptions = NO_OPTIONS,
    resources: ResourceOptions = ALL_RESOURCES,
    every: Annotated[
        bool,
        typer.Option("--all", help="Show all values, also defaults [default: those that are set]."),
    ] = False,
    changes: ConfigChanges = NO_CONFIG_CHANGES,
    dry_run: DryRunOption = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Show and change configurations: topics, brokers, groups, client metrics.

    \b
    kafkawire configs -b localhost:9092
    kafkawire configs -b localhost:9092 --topic orders --all
    kafkawire configs -b localhost:9092 --broker 1 --all -f json
    kafkawire configs -b localhost:9092 --topic orders --add-config retention.ms=60000 --dry-run
    kafkawire configs -b localhost:9092 --broker-defaults --add-config log.cleaner.threads=2
    kafkawire configs -b localhost:9092 --group g --delete-config consumer.session.timeout.ms
    kafkawire configs -b localhost:9092 --client-metrics all --add-config interval.ms=30000

    Without a resource, shows what is set for any. Sensitive values are hidden. The source of a
    value is that of Kafka's tools, such as DYNAMIC_TOPIC_CONFIG, set for the topic, or
    DEFAULT_CONFIG.

    Exit code 1: an error of the cluster, such as an unknown topic or an invalid value; 2: usage
    error.
    """
    named = resources.resources()
    wanted = changes.parsed()
    if changes.any and not named:
        hint = "--topic, --broker, --broker-defaults, --group, --client-metrics"
        raise typer.BadParameter(f"needed with {changes.first}", param_hint=hint)
    if changes.any and every:
        raise typer.BadParameter(f"not allowed together with {changes.first}", param_hint="--all")
    ChangeOptions(dry_run=dry_run).check(None, changing=changes.any)
    client = live.admin_configuration(options)
    if changes.any:
        _change(client, named, wanted, form, dry_run=dry_run)
        return
    described: Described = {}

    async def work() -> None:
        async with live.admin(client.values) as admin:
            await _check_brokers(admin, named)
            described.update(await _describe(admin, named, every=every))

    live.run(work, client)
    print_report(
        form,
        lambda: starmap(_section, described.items()),
        lambda: {
            "resources": [_json(resource, entries) for resource, entries in described.items()]
        },
        "No configurations found.",
    )


async def _check_brokers(admin: Admin, named: list[ConfigResource]) -> None:
    """Check that the cluster has the brokers among resources."""
    ids = [
        int(resource.name)
        for resource in named
        if resource.resource_type in ("BROKER", "BROKER_LOGGER") and resource.name
    ]
    if ids:
        rows = (await admin.describe_cluster()).brokers
        check_brokers(ids, (row.broker_id for row in rows))


async def _describe(admin: Admin, named: list[ConfigResource], *, every: bool) -> Described:
    """Describe resources, all if none is named; every: also values that are not set for them."""
    from kafkawire.client.failures import BrokerError

    wanted = named or await _listed(admin)
    try:
        described = await admin.describe_configs(wanted, include_synonyms=True)
    except BrokerError as error:
        topics = [resource.name for resource in wanted if resource.resource_type == "TOPIC"]
        raise await with_similar_topic(admin, error, topics) from None
    shown = {
        resource: [
            entry
            for _, entry in sorted(entries.items())
            if every or not entry.is_default or resource.resource_type == "BROKER_LOGGER"
        ]
        for resource, entries in described.items()
    }
    return {resource: entries for resource, entries in shown.items() if entries or named}


async def _listed(admin: Admin) -> list[ConfigResource]:
    """List resources: topics and brokers only where the cluster lists no others (before 4.1)."""
    from kafkawire.client.failures import RequestFailed
    from kafkawire.client.requests import Reason
    from kafkawire.net.admin import ConfigResource

    defaults = ConfigResource("BROKER", "")
    try:
        return [defaults, *await admin.list_config_resources(LISTED)]
    except RequestFailed as error:
        if error.reason is not Reason.NO_VERSION:
            raise
    brokers = (await admin.describe_cluster()).brokers
    return [
        defaults,
        *(ConfigResource("BROKER", str(broker.broker_id)) for broker in brokers),
        *(ConfigResource("TOPIC", name) for name in await admin.list_topics()),
    ]


def _change(
    client: live.Configuration,
    named: list[ConfigResource],
    wanted: dict[str, str | None],
    form: Form,
    *,
    dry_run: bool,
) -> None:
    report = ChangeReport(form, dry_run=dry_run)
    topics = [resource.name for resource in named if resource.resource_type == "TOPIC"]
    removed = [key for key, value in wanted.items() if value is None]
    shown = {
        key: value if value is None or not is_secret_config(key, sensitive=False) else HIDDEN
        for key, value in wanted.items()
    }

    async def work() -> None:
        from kafkawire.client.failures import BrokerError

        async with live.admin(client.values) as admin:
            await _check_brokers(admin, named)
            try:
                if topics:
                    await check_configs(admin, topics, removed)
                for resource in named:
                    with similar_config(wanted, known_keys(resource), ADD):
                        await admin.alter_configs(resource, wanted, validate_only=dry_run)
                    report.add(Change("alter", _kind(resource), _name(resource), configs=shown))
            except BrokerError as error:
                raise await with_similar_topic(admin, error, topics) from None

    with report.printed():
        live.run(work, client)


def _kind(resource: ConfigResource) -> str:
    return resource.resource_type.lower()


def _name(resource: ConfigResource) -> str:
    return resource.name or "defaults"


def _section(resource: ConfigResource, entries: Iterable[ConfigEntry]) -> Section:
    title = f"{_kind(resource).replace('_', ' ').capitalize()} {_name(resource)}"
    rows = [(entry.name, _value(entry), entry.source, _notes(entry)) for entry in entries]
    lines = [] if rows else ["defaults only"]
    return Section(title, ("key", "value", "source", ""), rows, lines, ("source",))


def _value(entry: ConfigEntry) -> str:
    if entry.is_sensitive:
        return HIDDEN
    return "null" if entry.value is None else entry.value or '""'


def _notes(entry: ConfigEntry) -> str:
    return "read-only" if entry.read_only else ""


def _json(resource: ConfigResource, entries: Iterable[ConfigEntry]) -> dict[str, Any]:
    fields = ("read_only", "is_default", "is_sensitive", "source", "config_type")
    return resource._asdict() | {
        "configs": {
            entry.name: {
                "value": None if entry.is_sensitive else entry.value,
                **{name: getattr(entry, name) for name in fields},
                "synonyms": [
                    other._asdict() | ({"value": None} if entry.is_sensitive else {})
                    for other in entry.synonyms
                ],
            }
            for entry in entries
        }
    }
