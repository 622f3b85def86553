"""Reads a new password: from a file, standard input or the terminal, never from an argument."""

from __future__ import annotations

import sys
from getpass import getpass
from pathlib import Path
from typing import Annotated, Final

import typer

from ..input.panels import Panel

PASSWORD_FILE: Final = "--password-file"
STDIN: Final = "-"
LONGEST: Final = 1 << 12
"""Characters that are read of a password."""

PasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        PASSWORD_FILE,
        metavar="FILE",
        help="With --add: file with the password, - for standard input [default: prompt].",
        show_default=False,
        rich_help_panel=Panel.CHANGES,
    ),
]


def read_password(path: Path | None) -> str:
    """Read a password: the only line of a file or of standard input, or twice at a prompt.

    One that is empty, too long or mistyped, and a prompt without a terminal, are usage errors.
    """
    if path is None:
        return _prompted()
    try:
        text = sys.stdin.read(LONGEST + 1) if str(path) == STDIN else _of_file(path)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint=PASSWORD_FILE) from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{path}: not UTF-8", param_hint=PASSWORD_FILE) from None
    password = text.removesuffix("\n").removesuffix("\r")
    if not password or len(text) > LONGEST or "\n" in password:
        reason = f"{path}: expected one line, the password, of at most {LONGEST} characters"
        raise typer.BadParameter(reason, param_hint=PASSWORD_FILE)
    return password


def _of_file(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(LONGEST + 1)


def _prompted() -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise typer.BadParameter("needed where no terminal can prompt", param_hint=PASSWORD_FILE)
    password = getpass("Password: ", sys.stderr)
    if not password or getpass("Repeat: ", sys.stderr) != password:
        raise typer.BadParameter("the passwords are empty or differ", param_hint="--add")
    return password
