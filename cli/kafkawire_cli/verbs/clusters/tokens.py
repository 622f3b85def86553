"""`kafkawire tokens`: delegation tokens of a live cluster: listed, created, renewed, expired."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import Form, FormOption
from ...live.changes import NO_CHANGE_OPTIONS, Change, ChangeOptions, ChangeReport
from ...live.token_options import EXPIRE, NO_TOKEN_CHANGES, TokenChanges
from ...render.consumed_records import timestamp_text
from ...render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, DelegationToken


def tokens(
    options: ClusterOptions = NO_OPTIONS,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner-principal",
            metavar="TYPE:NAME",
            help="Of this owner, such as User:alice; repeatable [default: all; with --create the "
            "user of the connection].",
            show_default=False,
        ),
    ] = None,
    changes: TokenChanges = NO_TOKEN_CHANGES,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    form: FormOption = Form.TABLE,
) -> None:
    """Show, create, renew and expire delegation tokens.

    \b
    kafkawire tokens -b localhost:9092 --config alice.properties
    kafkawire tokens -b localhost:9092 --config alice.properties --create --show-secrets
    kafkawire tokens -b localhost:9092 --config alice.properties --create --show-secrets \\
        --renewer-principal User:bob --max-life-time-period 3600000 -f json
    kafkawire tokens -b localhost:9092 --config alice.properties --renew 9FfXLAIcRyG-2FPnmcQ1Eg
    kafkawire tokens -b localhost:9092 --config alice.properties --expire 9FfXLAIcRyG-2FPnmcQ1Eg

    A token is a credential: its id is the user name, its HMAC, in base64, the password. Clusters
    have tokens where delegation.token.secret.key is set, for authenticated connections.

    Exit code 1: an error of the cluster, such as an unknown token, or an expiry that was refused
    at the prompt; 2: usage error, such as --expire without --yes where no terminal can confirm.
    """
    owners = _principals(owner, "--owner-principal")
    renewers = _principals(changes.renewer, "--renewer-principal")
    changes.check(owners, dry_run=confirmation.dry_run)
    confirmation.check(EXPIRE if changes.expire else None, changing=changes.any)
    client = live.admin_configuration(options)
    if changes.create:
        created = changes._replace(renewer=renewers)
        _create(client, owners, created, form, dry_run=confirmation.dry_run)
    elif changes.any:
        _change_period(client, changes, confirmation, form)
    else:
        _list(client, owners, form)


def _principals(texts: list[str] | None, option: str) -> list[str]:
    for text in texts or ():
        kind, separator, name = text.partition(":")
        if not (kind and separator and name):
            raise typer.BadParameter(
                f"{text!r}: expected TYPE:NAME, such as User:alice", param_hint=option
            )
    return list(dict.fromkeys(texts or ()))


def _list(client: live.Configuration, owners: list[str], form: Form) -> None:
    described: list[DelegationToken] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            described.extend(await admin.describe_delegation_tokens(owners or None))

    live.run(work, client)
    head = ("token", "owner", "requester", "renewers", "issued", "expires", "ends at last")
    rows = [
        (
            token.token_id,
            token.owner,
            token.requester,
            ", ".join(token.renewers),
            *map(timestamp_text, (token.issued_ms, token.expires_ms, token.max_ms)),
        )
        for token in described
    ]
    print_report(
        form,
        lambda: [Section("Tokens", head, rows, optional=("requester", "issued"))],
        lambda: {"tokens": [_json(token) for token in described]},
        "No tokens found.",
    )


def _create(
    client: live.Configuration,
    owners: list[str],
    changes: TokenChanges,
    form: Form,
    *,
    dry_run: bool,
) -> None:
    report = ChangeReport(form, dry_run=dry_run)
    renewers = changes.renewer or []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            if dry_run:
                await admin.describe_delegation_tokens(owners or None)  # whether there are any
                of_owner = f"of {owners[0]}" if owners else "of the user of the connection"
                planned = {"owner": owners[0] if owners else None, "renewers": renewers}
                report.add(Change("create", "token", of_owner, fields=planned))
                return
            token = await admin.create_delegation_token(
                owner=owners[0] if owners else None,
                renewers=renewers,
                max_lifetime_ms=changes.max_lifetime_ms,
            )
            secret = b64encode(token.hmac).decode()
            text = f"{_text(token)}; HMAC {secret}"
            fields = _json(token) | {"hmac": secret}
            report.add(Change("create", "token", text, fields=fields))

    with report.printed():
        live.run(work, client)


def _change_period(
    client: live.Configuration, changes: TokenChanges, options: ChangeOptions, form: Form
) -> None:
    """Renew or expire exactly the tokens that are named."""
    action = "renew" if changes.renew else "expire"
    named: list[DelegationToken] = []

    async def find() -> None:
        async with live.admin(client.values) as admin:
            named.extend(await _named(admin, changes.renew or changes.expire or []))

    live.run(find, client)
    if action == "expire":
        options.confirm([f"token {_text(token)}" for token in named], action)
    report = ChangeReport(form, dry_run=options.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            for token in named:
                after = token
                if not options.dry_run and action == "renew":
                    expires = await admin.renew_delegation_token(
                        token.hmac, period_ms=changes.renew_ms
                    )
                    after = token._replace(expires_ms=expires)
                elif not options.dry_run:
                    expires = await admin.expire_delegation_token(
                        token.hmac, period_ms=changes.expire_ms
                    )
                    after = token._replace(expires_ms=expires)
                report.add(Change(action, "token", _text(after), fields=_json(after)))

    with report.printed():
        live.run(work, client)


async def _named(admin: Admin, ids: list[str]) -> list[DelegationToken]:
    """Return the tokens with these ids; the BrokerError names an unknown one."""
    from kafkawire import ErrorCode
    from kafkawire.client.failures import BrokerError

    tokens = {token.token_id: token for token in await admin.describe_delegation_tokens()}
    for token_id in ids:
        if token_id not in tokens:
            raise BrokerError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, f"token {token_id}")
    return [tokens[token_id] for token_id in dict.fromkeys(ids)]


def _text(token: DelegationToken) -> str:
    return f"{token.token_id} of {token.owner}, until {timestamp_text(token.expires_ms)}"


def _json(token: DelegationToken) -> dict[str, Any]:
    """Return a token without its secret."""
    return {name: value for name, value in token._asdict().items() if name != "hmac"}
