"""`kafkawire users`: SCRAM credentials of a live cluster: listed, added, removed."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import Form, FormOption
from ...input.panels import Panel
from ...live.changes import NO_CHANGE_OPTIONS, Change, ChangeOptions, ChangeReport
from ...live.passwords import PASSWORD_FILE, PasswordFileOption, read_password
from ...render.report import Section, print_report

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin

ADD: Final = "--add"
REMOVE: Final = "--remove"
ITERATIONS: Final = "--iterations"
FEWEST: Final = 4096
MOST: Final = 16_384
"""Iterations that Kafka accepts."""


class Mechanism(StrEnum):
    """SCRAM mechanisms of Kafka."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


class Credential(NamedTuple):
    """A credential of a user."""

    user: str
    mechanism: str
    iterations: int

    def text(self) -> str:
        """Describe the credential."""
        return f"{self.mechanism} of {self.user}, {self.iterations} iterations"


UserOption = Annotated[
    list[str] | None, typer.Option("--user", metavar="NAME", help="Of this user; repeatable.")
]
MechanismOption = Annotated[
    Mechanism | None,
    typer.Option(
        "--mechanism",
        help="Of this mechanism [default: all; with --add SCRAM-SHA-512].",
        show_default=False,
    ),
]
IterationsOption = Annotated[
    int | None,
    typer.Option(
        ITERATIONS,
        min=FEWEST,
        max=MOST,
        metavar="N",
        help=f"With --add: iterations of the hash, {FEWEST} to {MOST} [default: {FEWEST}].",
        show_default=False,
        rich_help_panel=Panel.CHANGES,
    ),
]


def users(  # noqa: PLR0913 - options of the verb
    options: ClusterOptions = NO_OPTIONS,
    user: UserOption = None,
    mechanism: MechanismOption = None,
    add: Annotated[
        bool,
        typer.Option(
            ADD, help="Add or replace the credential of a user.", rich_help_panel=Panel.CHANGES
        ),
    ] = False,
    iterations: IterationsOption = None,
    password_file: PasswordFileOption = None,
    remove: Annotated[
        bool,
        typer.Option(
            REMOVE, help="Remove the credentials of the users.", rich_help_panel=Panel.CHANGES
        ),
    ] = False,
    confirmation: ChangeOptions = NO_CHANGE_OPTIONS,
    form: FormOption = Form.TABLE,
) -> None:
    """Show, add and remove SCRAM credentials of users.

    \b
    kafkawire users -b localhost:9092
    kafkawire users -b localhost:9092 --user alice -f json
    kafkawire users -b localhost:9092 --add --user alice
    kafkawire users -b localhost:9092 --add --user alice --mechanism SCRAM-SHA-256 \\
        --password-file alice.txt
    kafkawire users -b localhost:9092 --remove --user alice --dry-run

    A password is never an argument, which ps shows: it is read from a file, standard input or the
    terminal, and the cluster receives a salted hash of it.

    Exit code 1: an error of the cluster, such as an unknown user, or a removal that was refused at
    the prompt; 2: usage error, such as --remove without --yes where no terminal can confirm.
    """
    names = list(dict.fromkeys(user or ()))
    _check(names, iterations, add=add, remove=remove)
    if password_file is not None and not add:
        raise typer.BadParameter(f"only allowed with {ADD}", param_hint=PASSWORD_FILE)
    confirmation.check(REMOVE if remove else None, changing=add or remove)
    client = live.admin_configuration(options)
    if add:
        chosen = mechanism or Mechanism.SHA_512
        credential = Credential(names[0], chosen.value, iterations or FEWEST)
        password = "" if confirmation.dry_run else read_password(password_file)
        _add(client, credential, password, form, dry_run=confirmation.dry_run)
        return
    credentials: list[Credential] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:
            described = await _credentials(admin, names or None)
            credentials.extend(one for one in described if mechanism in (None, one.mechanism))

    live.run(work, client)
    if remove and credentials:
        _remove(client, credentials, confirmation, form)
        return
    head = ("user", "mechanism", ">iterations")
    rows = [(one.user, one.mechanism, str(one.iterations)) for one in credentials]

    def as_json() -> dict[str, Any]:
        return {"credentials": [one._asdict() for one in credentials]}

    print_report(form, lambda: [Section("Users", head, rows)], as_json, "No users found.")


def _check(names: list[str], iterations: int | None, *, add: bool, remove: bool) -> None:
    """Check that the options fit together."""
    if add and remove:
        raise typer.BadParameter("not allowed together", param_hint=f"{ADD}, {REMOVE}")
    if add and len(names) != 1:
        raise typer.BadParameter(f"expected one user with {ADD}", param_hint="--user")
    if remove and not names:
        raise typer.BadParameter(f"needed with {REMOVE}", param_hint="--user")
    if iterations is not None and not add:
        raise typer.BadParameter(f"only allowed with {ADD}", param_hint=ITERATIONS)


async def _credentials(admin: Admin, names: list[str] | None) -> list[Credential]:
    described = await admin.describe_user_scram_credentials(names)
    return [
        Credential(name, *credential)
        for name, of_user in described.items()
        for credential in of_user
    ]


def _add(
    client: live.Configuration, credential: Credential, password: str, form: Form, *, dry_run: bool
) -> None:
    from kafkawire.net.admin import ScramCredential

    report = ChangeReport(form, dry_run=dry_run)
    name, mechanism, iterations = credential

    async def work() -> None:
        async with live.admin(client.values) as admin:
            existing = {(one.user, one.mechanism) for one in await _credentials(admin, None)}
            if not dry_run:
                upserted = ScramCredential(mechanism, iterations)
                await admin.upsert_user_scram_credential(name, upserted, password)
            report.add(_change("alter" if (name, mechanism) in existing else "create", credential))

    with report.printed():
        live.run(work, client)


def _remove(
    client: live.Configuration, credentials: list[Credential], options: ChangeOptions, form: Form
) -> None:
    """Remove exactly the credentials that were confirmed."""
    options.confirm([f"credential: {one.text()}" for one in credentials])
    report = ChangeReport(form, dry_run=options.dry_run)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            for one in credentials:
                if not options.dry_run:
                    await admin.delete_user_scram_credential(one.user, one.mechanism)
                report.add(_change("delete", one))

    with report.printed():
        live.run(work, client)


def _change(action: str, credential: Credential) -> Change:
    return Change(action, "credential", credential.text(), fields=credential._asdict())
