"""Numbers in arguments: other digits than 0 to 9, or far too many, are usage errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkawire.capture.filters import parse as parse_filter
from kafkawire.client.config import CLIENT_KEYS, read_config
from kafkawire.client.consumer import read_consumer_config
from kafkawire.client.failures import ConfigurationError
from kafkawire.errors import FilterError, InvalidValue
from kafkawire.net.admin import ConfigResource
from kafkawire.net.admin.configs import numbered
from kafkawire.node.quorum.add_scram import _iterations as scram_iterations
from kafkawire.spark.errors import BadOption
from kafkawire.spark.options import parse as parse_options
from kafkawire.whole_numbers import whole_number
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


def read_reset(digits: str) -> object:
    reset = {"auto.offset.reset": f"by_timestamp:{digits}"}
    return read_consumer_config({"bootstrap.servers": "localhost:1", **reset})


@pytest.mark.parametrize("digits", [LONG, SUPERSCRIPT], ids=["long", "superscript"])
@pytest.mark.parametrize(
    ("read", "error", "reason"),
    [
        (
            lambda digits: numbered(ConfigResource("BROKER", digits), "resource"),
            InvalidValue,
            "expected the id of a broker",
        ),
        (
            lambda digits: read_config(CLIENT_KEYS, {"bootstrap.servers": f"localhost:{digits}"}),
            ConfigurationError,
            "port (is not between 1 and 65535|'\\u00b2' is not a number)",
        ),
        (
            read_reset,
            ConfigurationError,
            "invalid reset policy",
        ),
        (lambda digits: parse_filter(f"error == {digits}"), FilterError, "unknown error"),
        (
            lambda digits: parse_options({"path": "x", "startTs": digits}),
            BadOption,
            "option startTs: invalid value",
        ),
        (
            lambda digits: parse_options({"path": "x", "apis": digits}),
            BadOption,
            "option apis: invalid value",
        ),
        (
            lambda digits: scram_iterations(digits),
            ValueError,
            "iterations: expected 4096 to",
        ),
    ],
    ids=["broker", "port", "timestamp", "error", "seconds", "api", "iterations"],
)
def test_the_library_refuses_digits_that_are_no_number(
    read: Callable[[str], object], error: type[Exception], reason: str, digits: str
) -> None:
    with pytest.raises(error, match=reason):
        read(digits)
