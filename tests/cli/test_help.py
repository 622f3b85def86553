"""The help of all verbs at 80 columns: no word is broken."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from kafkawire_cli.main import app
from kafkawire_cli.verb_table import VERBS

FRAMES = re.compile("[\u2500-\u257f]")
"""Lines of boxes."""


def words(verb: str, columns: int) -> set[str]:
    """Return the words of the help of a verb, but for what an ellipsis abbreviates."""
    environment = {"COLUMNS": str(columns), "TERMINAL_WIDTH": str(columns)}
    shown = CliRunner().invoke(app, [verb, "--help"], env=environment, terminal_width=columns)
    assert shown.exit_code == 0
    return {word for word in FRAMES.sub(" ", shown.stdout).split() if not word.endswith("...")}


@pytest.mark.parametrize("verb", VERBS)
def test_help_breaks_no_word(verb: str) -> None:
    assert words(verb, 80) <= words(verb, 400)
