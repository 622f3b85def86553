"""Creates, alters and deletes topics of a cluster (`kafkawire topics --create`).

Only topics named on the command line are changed, and none if one of those to alter or to
delete does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from kafkawire.display import plural
from kafkawire.whole_numbers import MAX_INT32, whole_number

from ..input import cluster as live
from ..input.options import Form, pairs
from ..input.panels import Panel
from .changes import Change, ChangeOptions, ChangeReport
from .completion import complete_topic
from .unknown_names import check_configs, described_topics, similar_config

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, TopicInfo

CONFIG: Final = "--topic-config"
CONFIG_DELETED: Final = "--delete-config"
FACTOR: Final = "--replication-factor"
SIZED: Final = "NAME[:PARTITIONS]"


class TopicChanges(NamedTuple):
    """Options that create, alter or delete topics of a cluster."""

    create: Annotated[
        list[str] | None,
        typer.Option(
            metavar=SIZED, help="Create this topic; repeatable.", rich_help_panel=Panel.CHANGES
        ),
    ] = None
    alter: Annotated[
        list[str] | None,
        typer.Option(
            metavar=SIZED,
            help="Alter this topic: add partitions up to this number, change its configuration; "
            "repeatable.",
            autocompletion=complete_topic,
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    delete: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Delete this topic and its records; repeatable.",
            autocompletion=complete_topic,
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    topic_config: Annotated[
        list[str] | None,
        typer.Option(
            CONFIG,
            metavar="KEY=VALUE",
            help="With --create or --alter: configuration of the topic; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            CONFIG_DELETED,
            metavar="KEY",
            help="With --alter: reset this key to its default; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    replication_factor: Annotated[
        int,
        typer.Option(
            FACTOR,
            min=-1,
            metavar="N",
            help="With --create: replication factor; -1: broker default.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = -1

    @property
    def any(self) -> bool:
        """Whether topics are created, altered or deleted."""
        return bool(self.create or self.alter or self.delete)


NO_TOPIC_CHANGES: Final = TopicChanges()


class Wanted(NamedTuple):
    """The changes, checked. partitions: -1 for the default, or for no change."""

    created: dict[str, int]
    altered: dict[str, int]
    deleted: list[str]
    configs: dict[str, str | None]
    replication_factor: int


def checked(changes: TopicChanges) -> Wanted:
    """Check that the options fit together, and parse them."""
    if not changes.create and changes.replication_factor != -1:
        raise typer.BadParameter("only allowed with --create", param_hint=FACTOR)
    if not (changes.create or changes.alter) and changes.topic_config:
        raise typer.BadParameter("only allowed with --create or --alter", param_hint=CONFIG)
    if not changes.alter and changes.delete_config:
        raise typer.BadParameter("only allowed with --alter", param_hint=CONFIG_DELETED)
    configs: dict[str, str | None] = {**pairs(changes.topic_config, CONFIG)}
    for key in changes.delete_config or []:
        if key in configs:
            raise typer.BadParameter(f"{key} is also set", param_hint=CONFIG_DELETED)
        configs[key] = None
    created = dict(_sized(text, "--create") for text in changes.create or [])
    altered = dict(_sized(text, "--alter") for text in changes.alter or [])
    for name, partitions in altered.items():
        if partitions == -1 and not configs:
            raise typer.BadParameter(
                f"nothing to alter in {name!r}: expected NAME:PARTITIONS, {CONFIG} or "
                f"{CONFIG_DELETED}",
                param_hint="--alter",
            )
    deleted = list(dict.fromkeys(changes.delete or []))
    return Wanted(created, altered, deleted, configs, changes.replication_factor)


def _sized(text: str, option: str) -> tuple[str, int]:
    """Parse NAME[:PARTITIONS]; the broker validates the name."""
    name, separator, count = text.partition(":")
    if not separator:
        return name, -1
    partitions = whole_number(count, MAX_INT32)
    if not partitions:
        raise typer.BadParameter(f"invalid number of partitions {count!r}", param_hint=option)
    return name, partitions


def change(client: live.Configuration, wanted: Wanted, options: ChangeOptions, form: Form) -> None:
    """Make the changes, or validate them, and report each."""
    topics: dict[str, TopicInfo] = {}
    report = ChangeReport(form, dry_run=options.dry_run)

    async def find() -> None:
        async with live.admin(client.values) as admin:
            topics.update(await described_topics(admin, [*wanted.altered, *wanted.deleted]))
            reset = [key for key, value in wanted.configs.items() if value is None]
            await check_configs(admin, list(wanted.altered), reset)

    async def work() -> None:
        from kafkawire.configs import TOPIC_CONFIGS

        async with live.admin(client.values) as admin:
            with similar_config(wanted.configs, TOPIC_CONFIGS, CONFIG):
                await _create(admin, wanted, report, dry_run=options.dry_run)
                await _alter(admin, wanted, report, dry_run=options.dry_run)
            for name in wanted.deleted:
                if not options.dry_run:
                    await admin.delete_topic(name)
                report.add(Change("delete", "topic", name, len(topics[name].partitions)))

    if wanted.altered or wanted.deleted:
        live.run(find, client)
    if wanted.deleted:
        options.confirm(
            [
                f"topic {name} and its records: {plural(len(topics[name].partitions), 'partition')}"
                for name in wanted.deleted
            ]
        )
    with report.printed():
        live.run(work, client)


async def _create(admin: Admin, wanted: Wanted, report: ChangeReport, *, dry_run: bool) -> None:
    configs = {key: value for key, value in wanted.configs.items() if value is not None}
    for name, partitions in wanted.created.items():
        await admin.create_topic(
            name,
            partitions=partitions,
            replication_factor=wanted.replication_factor,
            configs=configs,
            validate_only=dry_run,
        )
        number = None if partitions == -1 else partitions
        report.add(Change("create", "topic", name, number, {**configs}))


async def _alter(admin: Admin, wanted: Wanted, report: ChangeReport, *, dry_run: bool) -> None:
    for name, partitions in wanted.altered.items():
        if partitions != -1:
            await admin.create_partitions(name, partitions, validate_only=dry_run)
            report.add(Change("alter", "topic", name, partitions))
        if wanted.configs:
            await admin.alter_topic_config(name, wanted.configs, validate_only=dry_run)
            report.add(Change("alter", "topic", name, configs=wanted.configs))
