"""Every verb that reads captures, on every recording: it prints a report and never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from kafkawire_cli.main import app
from tests.conftest import FIXTURES
from tests.fuzzing import SOAK
from tests.recordings import ANY_CAPTURE, own, third_party

CAPTURE: Final = "CAPTURE"
OUT: Final = "OUT"
VERBS: Final = (
    ("decode", CAPTURE, "--format", "table", "--time", "utc"),
    ("decode", CAPTURE, "--format", "tree", "--filter", "latency > 1ms or error != NONE"),
    ("decode", CAPTURE, "--table", "partitions"),
    ("summary", CAPTURE, "--filter", "api == Fetch or error != NONE"),
    ("latency", CAPTURE),
    ("topics", CAPTURE),
    ("clients", CAPTURE),
    ("groups", CAPTURE),
    ("transactions", CAPTURE),
    ("readiness", CAPTURE, "--target", "4.0"),
    ("top", CAPTURE),
    ("report", CAPTURE, "-o", OUT),
    ("sql", "SELECT api_name, count(*), quantile_cont(latency_ns, .99) FROM exchanges GROUP BY 1",
     CAPTURE),
)  # fmt: skip


def recordings() -> list[Path]:
    """All recordings; in `make test` those of fixtures/captures."""
    if SOAK > 1:
        return [*own(ANY_CAPTURE), *third_party("public", ANY_CAPTURE)]
    return sorted((FIXTURES / "captures").glob(ANY_CAPTURE))


RECORDINGS: Final = recordings()


def chosen(path: Path) -> list[tuple[str, ...]]:
    """The verbs to try on a recording: three of them; all in `make soak`."""
    at = RECORDINGS.index(path)
    return [
        VERBS[(at + step) % len(VERBS)] for step in ((0, 5, 9) if SOAK == 1 else range(len(VERBS)))
    ]


@pytest.mark.fuzz
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_every_verb(path: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out.html")
    for verb in chosen(path):
        given = [{CAPTURE: str(path), OUT: out}.get(each, each) for each in verb]
        result = CliRunner().invoke(app, given)
        assert result.exit_code in (0, 1), result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.output
        assert all(each.isprintable() or each in "\n\t" for each in result.stdout), verb
        assert result.stdout or Path(out).stat().st_size > 10_000


def test_every_verb_is_tried() -> None:
    tried = {verb for path in RECORDINGS for verb in chosen(path)}
    assert tried == set(VERBS)
