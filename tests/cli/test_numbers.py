"""Numbers in arguments: digits that are no number, or far too many of them, are usage errors."""

from __future__ import annotations

import pytest

from kafkawire_cli.numbers import whole_number
from tests.cli.reports import run
from tests.conftest import FIXTURES

NOBODY = ("-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=200")
CAPTURE = str(FIXTURES / "captures" / "ck-848.pcap")
LONG = "9" * 5_000
"""More digits than Python's `int` takes."""
SUPERSCRIPT, ARABIC = "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("255", 255),
        ("0" * 5_000, 0),
        ("256", None),
        ("-1", None),
        ("+1", None),
        (" 1", None),
        ("1_0", None),
        ("", None),
        (LONG, None),
        (SUPERSCRIPT, None),
        (ARABIC, None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole_number(text, 255) == number


@pytest.mark.parametrize("digits", [LONG, SUPERSCRIPT], ids=["long", "superscript"])
@pytest.mark.parametrize(
    "words",
    [
        ("configs", *NOBODY, "--broker", "{}"),
        ("log-dirs", *NOBODY, "--broker", "1", "--move", "orders:{}", "--to", "/d"),
        ("features", *NOBODY, "--upgrade", "metadata.version={}"),
        ("topics", *NOBODY, "--create", "orders:{}"),
        ("topics", *NOBODY, "--alter", "orders:{}"),
        ("reassign", *NOBODY, "--generate", "--topic", "orders", "--to", "1,{}"),
        ("consume", *NOBODY, "orders", "--offset", "-{}"),
        ("serve", "--topic", "orders:{}"),
        ("serve", "--data-dir", "/tmp/never", "--controllers", "{}@127.0.0.1:1"),
        ("decode", "--broker", "127.0.0.1:{}", CAPTURE),
        ("decode", "--api", "{}", CAPTURE),
        ("explain", "--api", "{}", "00"),
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]).replace(CAPTURE, ""),
)
def test_digits_that_are_no_number_are_usage_errors(words: tuple[str, ...], digits: str) -> None:
    done = run(*(each.format(digits) for each in words))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr
