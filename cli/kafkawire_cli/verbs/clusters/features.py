"""`kafkawire features`: features of a live cluster: their levels are shown, raised, lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from kafkawire.whole_numbers import whole_number

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.names import suggestion
from ...input.options import Form, FormOption, pairs
from ...input.panels import Panel
from ...live.changes import NO_CHANGE_OPTIONS, Change, ChangeOptions, ChangeReport
from ...render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin
    from kafkawire.net.admin.features import Change as ChangeType

UPGRADE: Final = "--upgrade"
DOWNGRADE: Final = "--downgrade"
UNSAFE: Final = "--unsafe"
METADATA: Final = "metadata.version"
LEVEL: Final = "NAME=LEVEL"
HIGHEST_LEVEL: Final = 0x7FFF


class FeatureLevels(NamedTuple):
    """A feature: the level of the cluster, 0 is off; the levels that all its brokers support."""

    name: str
    level: int
    lowest: int
    highest: int


def features(
    options: ClusterOptions = NO_OPTIONS,
    upgrade: Annotated[
        list[str] | None,
        typer.Option(
            UPGRADE,
            metavar=LEVEL,
            help=f"Raise this feature; of {METADATA} also a release, such as 4.0-IV3; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None,
    downgrade: Annotated[
        list[str] | None,
        typer.Option(
            DOWNGRADE,
            metavar=LEVEL,
            help="Lower this feature, 0 disables it; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None,
    unsafe: Annotated[
        bool,
        typer.Option(
            UNSAFE,
            help=f"With {DOWNGRADE}: also if metadata is lost.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    form: FormOption = Form.TABLE,
) -> None:
    """Show, upgrade and downgrade features of a cluster.

    \b
    kafkawire features -b localhost:9092
    kafkawire features -b localhost:9092 --upgrade metadata.version=4.0-IV3 --dry-run
    kafkawire features -b localhost:9092 --upgrade share.version=1 --upgrade group.version=1
    kafkawire features -b localhost:9092 --downgrade transaction.version=0

    The cluster validates a change with --dry-run, and makes all of it or nothing.

    Exit code 1: an error of the cluster, such as an unknown feature or a level that a broker does
    not support, or a downgrade that was refused at the prompt; 2: usage error, such as a downgrade
    without --yes where no terminal can confirm.
    """
    if upgrade and downgrade:
        raise typer.BadParameter("not allowed together", param_hint=f"{UPGRADE}, {DOWNGRADE}")
    if unsafe and not downgrade:
        raise typer.BadParameter(f"only allowed with {DOWNGRADE}", param_hint=UNSAFE)
    option = DOWNGRADE if downgrade else UPGRADE
    levels = {
        name: _level(name, text, option)
        for name, text in pairs(upgrade or downgrade, option, LEVEL).items()
    }
    confirmation.check(DOWNGRADE if downgrade else None, changing=bool(levels))
    client = live.admin_configuration(options)
    if levels:
        change: ChangeType = "UPGRADE"
        if downgrade:
            change = "UNSAFE_DOWNGRADE" if unsafe else "SAFE_DOWNGRADE"
        _change(client, levels, change, confirmation, form)
        return
    described: list[FeatureLevels] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            described.extend((await _features(admin)).values())

    live.run(work, client)
    head = ("feature", ">level", ">lowest", ">highest", "release")
    rows = [(one.name, *map(str, one[1:]), _release(one.name, one.level)) for one in described]
    print_report(
        form,
        lambda: [Section("Features", head, rows)],
        lambda: {"features": [one._asdict() for one in described]},
        "No features found.",
    )


def _level(name: str, text: str, option: str) -> int:
    """Parse a level, or of metadata.version a release. Another text is a usage error."""
    from kafkawire.configs.features import METADATA_VERSIONS

    level = whole_number(text, HIGHEST_LEVEL)
    if level is not None:
        return level
    releases = {release: level for level, release in METADATA_VERSIONS.items()}
    if name == METADATA and text in releases:
        return releases[text]
    expected = f"expected {LEVEL}, a level of at most {HIGHEST_LEVEL}"
    hint = f", or a release{suggestion(text, releases)}" if name == METADATA else ""
    raise typer.BadParameter(f"{name}={text}: {expected}{hint}", param_hint=option)


def _release(name: str, level: int) -> str:
    """Return the release of a level of metadata.version."""
    from kafkawire.configs.features import METADATA_VERSIONS

    return METADATA_VERSIONS.get(level, "") if name == METADATA else ""


async def _features(admin: Admin) -> dict[str, FeatureLevels]:
    """Read the features of the cluster: the levels that all brokers support."""
    described: dict[str, FeatureLevels] = {}
    for broker in (await admin.describe_cluster()).brokers:
        for one in (await admin.broker_versions(broker.broker_id)).features:
            row = FeatureLevels(one.name, one.level, one.lowest, one.highest)
            other = described.get(one.name, row)
            described[one.name] = FeatureLevels(
                one.name,
                max(row.level, other.level),
                max(row.lowest, other.lowest),
                min(row.highest, other.highest),
            )
    return dict(sorted(described.items()))


def _change(
    client: live.Configuration,
    levels: dict[str, int],
    change: ChangeType,
    options: ChangeOptions,
    form: Form,
) -> None:
    """Change exactly the levels that were confirmed."""
    before: dict[str, int] = {}

    async def find() -> None:
        async with live.admin(client.values) as admin:
            described = await _features(admin)
            _check_names(levels, described)
            before.update((name, described[name].level) for name in levels)

    live.run(find, client)
    action = "upgrade" if change == "UPGRADE" else "downgrade"
    texts = {
        name: f"{name} from {_text(name, before[name])} to {_text(name, level)}"
        for name, level in levels.items()
    }
    if action == "downgrade":
        options.confirm([f"feature {text}" for text in texts.values()], action)
    report = ChangeReport(form, dry_run=options.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            await admin.update_features(levels, change, validate_only=options.dry_run)
        for name, level in levels.items():
            fields = {"name": name, "level": level, "previous_level": before[name]}
            report.add(Change(action, "feature", texts[name], fields=fields))

    with report.printed():
        live.run(work, client)


def _check_names(levels: dict[str, int], described: dict[str, FeatureLevels]) -> None:
    """Check that the cluster has the features; the BrokerError names a similar one."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    for name in levels:
        if name not in described:
            detail = f"unknown feature {name}{suggestion(name, described)}"
            raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION, detail)


def _text(name: str, level: int) -> str:
    release = _release(name, level)
    return f"{level} ({release})" if release else str(level)
