"""The benchmark of the package runs without the peers, which npm installs for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.codegen import typescript

from .node import node


def test_codecs_are_measured(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typescript, "MESSAGES", 10)
    figures = typescript._codecs(str(node()), sources, 1, None)
    assert {figure.contender for figure in figures} == {typescript.OURS}
    assert [figure.case.split()[1] for figure in figures] == [
        *("FetchResponse", "ProduceResponse", "MetadataResponse"),
    ]
    assert all(0 < figure.low <= figure.median <= figure.high for figure in figures)
    assert typescript._size(sources).median > 1
