"""Options of `kafkawire tokens` that change delegation tokens."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import typer

from ..input.panels import Panel

CREATE: Final = "--create"
RENEW: Final = "--renew"
EXPIRE: Final = "--expire"
SECRETS: Final = "--show-secrets"
BROKERS: Final = -1
"""The period of the broker's configuration."""


class TokenChanges(NamedTuple):
    """What is created, renewed or expired."""

    create: Annotated[
        bool, typer.Option(CREATE, help="Create a token.", rich_help_panel=Panel.CHANGES)
    ] = False
    renewer: Annotated[
        list[str] | None,
        typer.Option(
            "--renewer-principal",
            metavar="TYPE:NAME",
            help=f"With {CREATE}: may renew it, too, such as User:bob; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    max_lifetime_ms: Annotated[
        int,
        typer.Option(
            "--max-life-time-period",
            min=-1,
            metavar="MS",
            help=f"With {CREATE}: milliseconds until it ends at last; -1: broker default.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = BROKERS
    show_secrets: Annotated[
        bool,
        typer.Option(
            SECRETS,
            help=f"With {CREATE}: print the secret, which is never shown again.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = False
    renew: Annotated[
        list[str] | None,
        typer.Option(
            RENEW,
            metavar="ID",
            help="Renew the token with this id; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    renew_ms: Annotated[
        int,
        typer.Option(
            "--renew-time-period",
            min=-1,
            metavar="MS",
            help=f"With {RENEW}: milliseconds until it expires; -1: broker default.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = BROKERS
    expire: Annotated[
        list[str] | None,
        typer.Option(
            EXPIRE,
            metavar="ID",
            help="Expire the token with this id; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    expire_ms: Annotated[
        int,
        typer.Option(
            "--expiry-time-period",
            min=-1,
            metavar="MS",
            help=f"With {EXPIRE}: milliseconds until it expires; -1: now.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = -1

    @property
    def any(self) -> bool:
        """Whether tokens are changed."""
        return bool(self.create or self.renew or self.expire)

    def check(self, owners: list[str], *, dry_run: bool) -> None:
        """Check that the options fit together."""
        if sum(map(bool, (self.create, self.renew, self.expire))) > 1:
            hint = f"{CREATE}, {RENEW}, {EXPIRE}"
            raise typer.BadParameter("not allowed together", param_hint=hint)
        for action, option, used in (
            (CREATE, "--renewer-principal", bool(self.renewer)),
            (CREATE, "--max-life-time-period", self.max_lifetime_ms != BROKERS),
            (CREATE, SECRETS, self.show_secrets),
            (RENEW, "--renew-time-period", self.renew_ms != BROKERS),
            (EXPIRE, "--expiry-time-period", self.expire_ms != BROKERS),
        ):
            if used and not getattr(self, action.removeprefix("--")):
                raise typer.BadParameter(f"only allowed with {action}", param_hint=option)
        if self.create and len(owners) > 1:
            raise typer.BadParameter(
                f"expected one owner with {CREATE}", param_hint="--owner-principal"
            )
        if owners and (self.renew or self.expire):
            raise typer.BadParameter(
                f"not allowed together with {RENEW}, {EXPIRE}", param_hint="--owner-principal"
            )
        if self.create and not self.show_secrets and not dry_run:
            reason = f"needed with {CREATE}: the secret is not shown again"
            raise typer.BadParameter(reason, param_hint=SECRETS)


NO_TOKEN_CHANGES: Final = TokenChanges()
