"""What is imported is what was built: off, hot or all, and never a native module left over."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from kafkawire.messages import REGISTRY
from tests.conftest import ROOT

MODES: Final = ("off", "hot", "all")

# where a build may fall back, any mode may be what was built; otherwise only the one requested for
ASKED: Final = os.environ.get("KAFKAWIRE_COMPILE", "hot")
ALLOWED: Final = (ASKED,) if os.environ.get("KAFKAWIRE_COMPILE_STRICT") == "1" else MODES


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
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build hook: its tables say what each mode compiles."""
    monkeypatch.syspath_prepend(str(ROOT / "codegen"))
    return importlib.import_module("hatch_build")


def native_runtime(hook: ModuleType) -> dict[str, Path | None]:
    paths = [Path(path).with_suffix("") for path in (*hook.RUNTIME, *hook.C_SOURCES)]
    modules = [path.as_posix().replace("/", ".") for path in paths]
    return {module: native_file(module) for module in modules}


def test_the_native_messages_are_those_of_a_mode(hook: ModuleType) -> None:
    everything = {info.name for info in REGISTRY}
    modes = {"off": set(), "hot": set(hook.HOT), "all": everything}
    assert modes["hot"] < everything
    assert set(native_messages()) in [modes[mode] for mode in ALLOWED]


def test_the_runtime_is_native_exactly_when_messages_are(hook: ModuleType) -> None:
    native = {module for module, file in native_runtime(hook).items() if file is not None}
    assert native == (set(native_runtime(hook)) if native_messages() else set())


def test_what_was_compiled_is_what_runs() -> None:
    native = native_messages()
    kinds = {info.name: type(REGISTRY.load(info.name).encode_to).__name__ for info in REGISTRY}
    assert {name for name, kind in kinds.items() if kind != "function"} == set(native)


def test_no_native_module_is_older_than_its_source(hook: ModuleType) -> None:
    found = [*native_messages().values(), *native_runtime(hook).values()]
    newer = [
        source
        for native in found
        if native is not None
        for source in sources_of(native)
        if source.stat().st_mtime > native.stat().st_mtime
    ]
    assert newer == []


SOURCES: Final = (".py", ".c", ".h")


def sources_of(native: Path) -> list[Path]:
    """Find what a module was made from, so far as it is there: a wheel has no C."""
    named = [native.with_name(native.name.partition(".")[0] + suffix) for suffix in SOURCES]
    return [source for source in named if source.exists()]


def methods(node: ast.ClassDef) -> list[str]:
    """List the methods of a class, those with several names by each of them."""
    names = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
    assigned = [each.targets for each in node.body if isinstance(each, ast.Assign)]
    more = [name.id for names in assigned for name in names if isinstance(name, ast.Name)]
    return [*names, *more]


def public(names: Iterable[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_a_module_in_c_has_what_its_twin_has(hook: ModuleType) -> None:
    """What is compiled from C stands in for a module in Python, name for name."""
    for path in hook.C_SOURCES:
        name = path.removesuffix(".c").replace("/", ".")
        module = importlib.import_module(name)
        twin = Path(str(module.__file__)).parent / Path(path).with_suffix(".py").name
        body = ast.parse(twin.read_text()).body
        functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
        classes = [node for node in body if isinstance(node, ast.ClassDef) and public([node.name])]
        own = {
            key
            for key, found in vars(module).items()
            if (isinstance(found, type) or inspect.isroutine(found)) and found.__module__ == name
        }
        assert public([*functions, *(node.name for node in classes)]) == public(own) != set()
        for node in classes:
            assert public(methods(node)) == public(vars(getattr(module, node.name)))


MOST_GENERATED: Final = 2_150_000
"""Bytes of the generated modules' source; what is written by hand has no limit."""

NEWER: Final = 400_000 if sys.version_info >= (3, 12) else 0
"""Bytes that mypyc writes more for Python 3.12 and 3.13."""

MOST_NATIVE: Final = {"off": 0, "hot": 5_050_000 + NEWER, "all": 10_800_000 + NEWER}
"""Bytes of native code by mode: compiling every message adds 5.7 MB."""


def test_what_a_build_makes_is_small(hook: ModuleType) -> None:
    """What the generator and the compiler write grows by mistake; other code, by decision."""
    import kafkawire
    import kafkawire.messages

    native = list(Path(kafkawire.__path__[0]).rglob("*" + EXTENSION_SUFFIXES[0]))
    library = find_spec(f"{hook.PACKAGE}__mypyc")
    if library is not None and library.origin is not None:
        native.append(Path(library.origin))
    generated = list(Path(kafkawire.messages.__path__[0]).glob("*.py"))
    messages = len(native_messages())
    mode = "off" if not messages else "hot" if messages == len(hook.HOT) else "all"
    assert 0 < size(generated) <= MOST_GENERATED
    assert size(native) <= MOST_NATIVE[mode]
    assert (mode == "off") == (not native)


def size(files: Iterable[Path]) -> int:
    """Add up the bytes of files."""
    return sum(file.stat().st_size for file in files)
