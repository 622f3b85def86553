"""Topics of a live cluster: listed, described, made, deleted.

Law: what is asked for by name and not there is an error; nothing is deleted that was not named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import live
from .live import BootstrapOption, SettingOption

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, TopicInfo

app = typer.Typer(no_args_is_help=True, help="Topics of a live cluster.")


@app.command("list")
def listed(bootstrap: BootstrapOption = "localhost:9092", setting: SettingOption = None) -> None:
    """Name the topics, one a line."""

    async def work() -> None:
        async with _admin(bootstrap, setting) as admin:
            for name in await admin.list_topics():
                typer.echo(name)

    live.run(work)


@app.command()
def describe(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC...")],
    bootstrap: BootstrapOption = "localhost:9092",
    setting: SettingOption = None,
) -> None:
    """Tell partitions, leaders and replicas."""

    async def work() -> None:
        async with _admin(bootstrap, setting) as admin:
            for topic in (await admin.describe_topics(names)).values():
                _show(topic)

    live.run(work)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="TOPIC")],
    partitions: Annotated[int, typer.Option("--partitions", "-p", min=-1)] = -1,
    replication_factor: Annotated[int, typer.Option("--replication-factor", "-r", min=-1)] = -1,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="A setting of the topic."),
    ] = None,
    bootstrap: BootstrapOption = "localhost:9092",
    setting: SettingOption = None,
) -> None:
    """Make a topic; -1 leaves a number to the broker."""
    configs = {key: str(value) for key, value in live.settings("", config).items()}
    del configs["bootstrap.servers"]

    async def work() -> None:
        async with _admin(bootstrap, setting) as admin:
            await admin.create_topic(
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
            )

    live.run(work)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC...")],
    bootstrap: BootstrapOption = "localhost:9092",
    setting: SettingOption = None,
) -> None:
    """Delete topics and all their records."""

    async def work() -> None:
        async with _admin(bootstrap, setting) as admin:
            for name in names:
                await admin.delete_topic(name)

    live.run(work)


def _admin(bootstrap: str, setting: list[str] | None) -> Admin:
    from kafkawire.net.admin import Admin

    return Admin(live.settings(bootstrap, setting))


def _show(topic: TopicInfo) -> None:
    typer.echo(f"{topic.name}  {len(topic.partitions)} partitions  id {topic.topic_id.hex()}")
    for each in topic.partitions:
        replicas = ",".join(map(str, each.replicas))
        isr = ",".join(map(str, each.isr))
        typer.echo(f"  {each.partition}  leader {each.leader}  replicas {replicas}  isr {isr}")
