"""What is imported is what was built: off, hot or all, and never a native module left over."""

from __future__ import annotations

import importlib
import os
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from kafkawire.messages import REGISTRY
from tests.conftest import ROOT

MODES: Final = ("off", "hot", "all")

# where a build may fall back, any mode may be what was built; otherwise only the one asked for
ASKED: Final = os.environ.get("KAFKAWIRE_COMPILE", "hot")
ALLOWED: Final = (ASKED,) if os.environ.get("KAFKAWIRE_COMPILE_STRICT") == "1" else MODES

RUNTIME: Final = ("limits", "reader", "structure", "writer")


def native_file(module: str) -> Path | None:
    """Find the native file that Python would load a module from, without loading it."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin) if spec.origin.endswith(tuple(EXTENSION_SUFFIXES)) else None


def native_messages() -> dict[str, Path]:
    files = {info.name: native_file(f"kafkawire.messages.{info.module}") for info in REGISTRY}
    return {name: file for name, file in files.items() if file is not None}


@pytest.fixture
def messages_of_mode(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """What the build hook compiles in each mode."""
    monkeypatch.syspath_prepend(str(ROOT / "codegen"))
    hot = importlib.import_module("hatch_build").HOT if "hot" in ALLOWED else ()
    return {"off": set(), "hot": set(hot), "all": {info.name for info in REGISTRY}}


def test_the_native_messages_are_those_of_a_mode(messages_of_mode: dict[str, set[str]]) -> None:
    assert set(native_messages()) in [messages_of_mode[mode] for mode in ALLOWED]


def test_the_runtime_is_native_exactly_when_messages_are() -> None:
    modules = [importlib.import_module(f"kafkawire.primitives.{name}") for name in RUNTIME]
    native = [str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES)) for module in modules]
    assert native == [bool(native_messages())] * len(RUNTIME)


def test_what_was_compiled_is_what_runs() -> None:
    native = native_messages()
    kinds = {info.name: type(REGISTRY.load(info.name).encode).__name__ for info in REGISTRY}
    assert {name for name, kind in kinds.items() if kind != "function"} == set(native)


def test_no_native_module_is_older_than_its_source() -> None:
    native = [
        *native_messages().values(),
        *map(native_file, map("kafkawire.primitives.{}".format, RUNTIME)),
    ]
    sources = {file: file.with_name(file.name.partition(".")[0] + ".py") for file in native if file}
    assert [s for file, s in sources.items() if s.stat().st_mtime > file.stat().st_mtime] == []


def test_hot_names_are_messages(messages_of_mode: dict[str, set[str]]) -> None:
    assert messages_of_mode["hot"] <= messages_of_mode["all"]
