"""Verbs for clusters: what no request can carry is a usage error, with the reason."""

from __future__ import annotations

import pytest

from tests.cli.reports import run

NOBODY = "127.0.0.1:1"
LONG = "x" * 40_000


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("topics", "--topic", ""), "empty string"),
        (("configs", "--topic", ""), "empty string"),
        (("configs", "--topic", LONG), "at most"),
        (("configs", "--broker", "99999999999"), "id of a broker"),
        (("configs", "--broker-logger", "9" * 5_000), "id of a broker"),
        (("log-dirs", "--broker", "99999999999"), "id of a broker"),
        (("configs", "--topic", "orders", "--add-config", "key=\udc80"), "UTF-8"),
        (("quotas", "--user", LONG), "at most"),
        (("users", "--user", LONG), "at most"),
        (("reassign", "--topic", ""), "empty string"),
        (("log-dirs", "--topic", ""), "empty string"),
        (("log-dirs", "--broker", "99999999999", "--move", "orders:0", "--to", "/d"), "between"),
        (("features", "--upgrade", "metadata.version=32768"), "at most"),
    ],
)
def test_an_argument_that_cannot_be_sent_is_a_usage_error(
    words: tuple[str, ...], reason: str
) -> None:
    done = run(*words, "-b", NOBODY, "-X", "default.api.timeout.ms=200")
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in " ".join(done.stderr.split())
