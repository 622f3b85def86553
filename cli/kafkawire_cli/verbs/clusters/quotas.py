"""`kafkawire quotas`: limits of users, client ids and addresses of a live cluster."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import Form, FormOption
from ...live.changes import Change, ChangeOptions, ChangeReport, DryRunOption
from ...live.config_resources import ADD, NO_CONFIG_CHANGES, ConfigChanges
from ...live.unknown_names import similar_config
from ...render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import QuotaEntity

    Quotas = dict[QuotaEntity, dict[str, float]]

DEFAULT: Final = ""
"""As in `QuotaEntity`: the default of all users, client ids or addresses."""


class EntityOptions(NamedTuple):
    """Whose quotas."""

    user: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of this user; repeatable.")
    ] = None
    user_defaults: Annotated[
        bool, typer.Option("--user-defaults", help="Of users without a quota of their own.")
    ] = False
    client: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="Of this client id, with --user of both together; repeatable."
        ),
    ] = None
    client_defaults: Annotated[
        bool, typer.Option("--client-defaults", help="Of client ids without a quota of their own.")
    ] = False
    ip: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="Of this address; repeatable.")
    ] = None
    ip_defaults: Annotated[
        bool, typer.Option("--ip-defaults", help="Of addresses without a quota of their own.")
    ] = False

    def entities(self) -> list[QuotaEntity]:
        """Return the entities that are named; users with addresses are a usage error."""
        from kafkawire.net.admin import QuotaEntity

        users = _names(self.user, "--user", default=self.user_defaults)
        clients = _names(self.client, "--client", default=self.client_defaults)
        addresses = _names(self.ip, "--ip", default=self.ip_defaults)
        if addresses and (users or clients):
            raise typer.BadParameter(
                "not allowed together with --user, --client", param_hint="--ip"
            )
        nobody: list[str | None] = [None]
        entities = product(users or nobody, clients or nobody, addresses or nobody)
        return [QuotaEntity(*parts) for parts in entities if parts != (None, None, None)]


def _names(names: list[str] | None, option: str, *, default: bool) -> list[str]:
    """Return the names of entities of a type, with the default where it is meant."""
    if "" in (names or ()):
        raise typer.BadParameter(f"expected a name; or {option}-defaults", param_hint=option)
    return [*dict.fromkeys(names or ()), *([DEFAULT] if default else [])]


EVERYONE: Final = EntityOptions()


def quotas(
    options: ClusterOptions = NO_OPTIONS,
    entities: EntityOptions = EVERYONE,
    changes: ConfigChanges = NO_CONFIG_CHANGES,
    dry_run: DryRunOption = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Show and change quotas: limits of users, client ids, addresses.

    \b
    kafkawire quotas -b localhost:9092
    kafkawire quotas -b localhost:9092 --user alice -f json
    kafkawire quotas -b localhost:9092 --user alice --add-config producer_byte_rate=1048576
    kafkawire quotas -b localhost:9092 --user-defaults --client app --add-config \\
        request_percentage=50 --dry-run
    kafkawire quotas -b localhost:9092 --ip 10.0.0.7 --add-config connection_creation_rate=10
    kafkawire quotas -b localhost:9092 --user alice --delete-config producer_byte_rate

    Quotas of users and client ids: producer_byte_rate, consumer_byte_rate, request_percentage,
    controller_mutation_rate; of addresses: connection_creation_rate.

    Exit code 1: an error of the cluster, such as an unknown quota; 2: usage error.
    """
    named = entities.entities()
    values = _numbers(changes)
    if changes.any and not named:
        hint = "--user, --user-defaults, --client, --client-defaults, --ip, --ip-defaults"
        raise typer.BadParameter(f"needed with {changes.first}", param_hint=hint)
    ChangeOptions(dry_run=dry_run).check(None, changing=changes.any)
    client = live.admin_configuration(options)
    if changes.any:
        _change(client, named, values, form, dry_run=dry_run)
        return
    described: Quotas = {}

    async def work() -> None:
        from kafkawire.net.admin import QuotaFilter

        filters = [QuotaFilter(*entity) for entity in named] or [QuotaFilter()]
        async with live.admin(client.values) as admin:
            for matching in filters:
                described.update(await admin.describe_client_quotas(matching))

    live.run(work, client)
    rows = [
        (*map(_shown, entity), key, _number(value))
        for entity, of_entity in described.items()
        for key, value in of_entity.items()
    ]
    head = ("user", "client", "ip", "quota", ">value")
    print_report(
        form,
        lambda: [Section("Quotas", head, rows)],
        lambda: {"quotas": [_json(entity) | {"values": described[entity]} for entity in described]},
        "No quotas found.",
    )


def _numbers(changes: ConfigChanges) -> dict[str, float | None]:
    """Return the changes as numbers. A value that is not one is a usage error."""
    numbers: dict[str, float | None] = {}
    for key, text in changes.parsed().items():
        try:
            number = None if text is None else float(text)
        except ValueError:
            number = math.nan
        if number is not None and not math.isfinite(number):
            raise typer.BadParameter(f"{key}={text}: expected a number", param_hint=changes.first)
        numbers[key] = number
    return numbers


def _change(
    client: live.Configuration,
    named: list[QuotaEntity],
    values: dict[str, float | None],
    form: Form,
    *,
    dry_run: bool,
) -> None:
    report = ChangeReport(form, dry_run=dry_run)
    configs = {key: None if value is None else _number(value) for key, value in values.items()}

    async def work() -> None:
        from kafkawire.controller.operations.client_quotas import KEYS

        keys = {key for of_entity in KEYS.values() for key in of_entity}
        async with live.admin(client.values) as admin:
            for entity in named:
                with similar_config(values, sorted(keys), ADD):
                    await admin.alter_client_quotas({entity: values}, validate_only=dry_run)
                report.add(
                    Change("alter", "quotas", _text(entity), configs=configs, fields=_json(entity))
                )

    with report.printed():
        live.run(work, client)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _shown(name: str | None) -> str:
    return "" if name is None else name or "(default)"


def _text(entity: QuotaEntity) -> str:
    parts = zip(("user", "client", "ip"), entity, strict=True)
    words = (f"{kind} {_shown(name)}" for kind, name in parts if name is not None)
    return f"of {', '.join(words)}"


def _json(entity: QuotaEntity) -> dict[str, Any]:
    """Return the parts that an entity has; null is the default of a part."""
    return {kind: name or None for kind, name in entity._asdict().items() if name is not None}
