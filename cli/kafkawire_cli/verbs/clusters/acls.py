"""`kafkawire acls`: the ACLs of a live cluster: listed, added, removed."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.names import suggestion
from ...input.options import Form, FormOption
from ...input.panels import Panel
from ...live.changes import NO_CHANGE_OPTIONS, Change, ChangeOptions, ChangeReport
from ...live.completion import complete_topic
from ...render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import AclBinding, AclFilter

ADD: Final = "--add"
REMOVE: Final = "--remove"
CLUSTER_NAME: Final = "kafka-cluster"
Resource = tuple[str | None, str | None]
"""Type and name; None for any."""


class Matching(NamedTuple):
    """Which ACLs are listed or removed, or what those to add are."""

    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Of this topic, * for all; repeatable.",
            autocompletion=complete_topic,
        ),
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of this group, * for all; repeatable."),
    ] = None
    transactional_id: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Of this transactional id, * for all; repeatable."),
    ] = None
    cluster_resource: Annotated[bool, typer.Option("--cluster", help="Of the cluster itself.")] = (
        False
    )
    prefixed: Annotated[
        bool, typer.Option("--prefixed", help="Of names that begin so, not of one name.")
    ] = False
    principal: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE:NAME", help="For User:NAME, User:* for all; repeatable."),
    ] = None
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="From this address; repeatable [default with --add: any]."
        ),
    ] = None
    operation: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="READ, WRITE, DESCRIBE, ALL ...; repeatable."),
    ] = None
    deny: Annotated[bool, typer.Option("--deny", help="That deny, not those that allow.")] = False

    @property
    def any(self) -> bool:
        """Whether any of these options is set."""
        return self != NOTHING

    @property
    def resources(self) -> list[Resource]:
        """The resources that are named."""
        named: list[Resource] = [
            (kind, name)
            for kind, names in (
                ("TOPIC", self.topic),
                ("GROUP", self.group),
                ("TRANSACTIONAL_ID", self.transactional_id),
            )
            for name in names or ()
        ]
        return [*named, *([("CLUSTER", CLUSTER_NAME)] if self.cluster_resource else [])]

    @property
    def operations(self) -> list[str]:
        """The operations by their names in Kafka. Another one is a usage error."""
        from kafkawire.net.admin.security.acls import OPERATIONS

        names = [each.upper().replace("-", "_") for each in self.operation or ()]
        for name in names:
            if name not in OPERATIONS:
                raise typer.BadParameter(
                    f"unknown operation {name!r}: expected one of {', '.join(OPERATIONS)}"
                    f"{suggestion(name, OPERATIONS)}",
                    param_hint="--operation",
                )
        return names

    def filters(self) -> list[AclFilter]:
        """Return filters that match these ACLs."""
        from kafkawire.net.admin import AclFilter

        anyone: list[str | None] = [None]
        return [
            AclFilter(
                kind,
                name,
                principal,
                operation,
                "DENY" if self.deny else None,
                host,
                "PREFIXED" if self.prefixed else None,
            )
            for (kind, name), principal, operation, host in product(
                self.resources or [(None, None)],
                self.principal or anyone,
                self.operations or anyone,
                self.host or anyone,
            )
        ]

    def bindings(self) -> list[AclBinding]:
        """Return the ACLs to add. A part that is not named is a usage error."""
        from kafkawire.net.admin import AclBinding

        needed = {
            "--topic, --group, --transactional-id, --cluster": self.resources,
            "--principal": self.principal,
            "--operation": self.operation,
        }
        for option, value in needed.items():
            if not value:
                raise typer.BadParameter(f"needed with {ADD}", param_hint=option)
        return [
            AclBinding(
                kind or "",
                name or "",
                principal,
                operation,
                "DENY" if self.deny else "ALLOW",
                host,
                "PREFIXED" if self.prefixed else "LITERAL",
            )
            for (kind, name), principal, operation, host in product(
                self.resources, self.principal or (), self.operations, self.host or ["*"]
            )
        ]


NOTHING: Final = Matching()


def acls(
    options: ClusterOptions = NO_OPTIONS,
    matching: Matching = NOTHING,
    add: Annotated[
        bool, typer.Option(ADD, help="Add these ACLs.", rich_help_panel=Panel.CHANGES)
    ] = False,
    remove: Annotated[
        bool,
        typer.Option(REMOVE, help="Remove the ACLs that match.", rich_help_panel=Panel.CHANGES),
    ] = False,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    form: FormOption = Form.TABLE,
) -> None:
    """Show, add and remove ACLs: who may do what.

    \b
    kafkawire acls -b localhost:9092
    kafkawire acls -b localhost:9092 --topic orders --principal User:alice -f json
    kafkawire acls -b localhost:9092 --add --topic orders --principal User:alice --operation READ
    kafkawire acls -b localhost:9092 --add --topic log- --prefixed --principal User:bob \\
        --operation WRITE --operation DESCRIBE --host 10.0.0.7
    kafkawire acls -b localhost:9092 --remove --principal User:bob --dry-run

    The cluster enforces ACLs if it has an authorizer (authorizer.class.name).

    Exit code 1: an error of the cluster, such as no authorizer, or a change that was refused at
    the prompt; 2: usage error, such as --remove without --yes where no terminal can confirm.
    """
    if add and remove:
        raise typer.BadParameter("not allowed together", param_hint=f"{ADD}, {REMOVE}")
    if remove and not matching.any:
        raise typer.BadParameter("expected options that say which ACLs", param_hint=REMOVE)
    confirmation.check(REMOVE if remove else None, changing=add or remove)
    added = matching.bindings() if add else []
    client = live.admin_configuration(options)
    if added:
        _add(client, added, confirmation, form)
        return
    filters = matching.filters()
    bindings: set[AclBinding] = set()

    async def find() -> None:
        async with live.admin(client.values) as admin:
            for each in filters:
                bindings.update(await admin.describe_acls(each))

    live.run(find, client)
    if remove:
        _remove(client, sorted(bindings), confirmation, form)
    else:
        _print(sorted(bindings), form)


def _add(
    client: live.Configuration, added: list[AclBinding], options: ChangeOptions, form: Form
) -> None:
    report = ChangeReport(form, dry_run=options.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if options.dry_run:
                await admin.describe_acls()  # whether there are any
            else:
                await admin.create_acls(added)
        for each in added:
            report.add(_change("create", each))

    with report.printed():
        live.run(work, client)


def _remove(
    client: live.Configuration, bindings: list[AclBinding], options: ChangeOptions, form: Form
) -> None:
    """Remove exactly the ACLs that were confirmed."""
    if not bindings:
        _print(bindings, form)
        return
    from kafkawire.net.admin import AclFilter

    options.confirm([f"ACL: {_text(each)}" for each in bindings])
    report = ChangeReport(form, dry_run=options.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if not options.dry_run:
                await admin.delete_acls([AclFilter(**each._asdict()) for each in bindings])
        for each in bindings:
            report.add(_change("delete", each))

    with report.printed():
        live.run(work, client)


def _change(action: str, acl: AclBinding) -> Change:
    return Change(action, "acl", _text(acl), fields=acl._asdict())


def _text(acl: AclBinding) -> str:
    name = f"{acl.resource_name}..." if acl.pattern_type == "PREFIXED" else acl.resource_name
    who = f"{acl.principal} from {acl.host}"
    return f"{acl.permission_type} {acl.operation} on {acl.resource_type} {name} for {who}"


def _print(bindings: list[AclBinding], form: Form) -> None:
    head = ("resource", "name", "pattern", "principal", "host", "permission", "operation")
    rows = [
        (
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.permission_type,
            each.operation,
        )
        for each in bindings
    ]

    def as_json() -> dict[str, Any]:
        return {"acls": [each._asdict() for each in bindings]}

    print_report(form, lambda: [Section("ACLs", head, rows)], as_json, "No ACLs found.")
