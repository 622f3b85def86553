"""Modules in Python that take the place of those in C where nothing is compiled."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import kafkawire


def twin(module: ModuleType) -> ModuleType:
    """Load the Python source of a module, from wherever that itself was loaded."""
    package = Path(kafkawire.__file__).parent
    path = package.joinpath(*module.__name__.split(".")[1:]).with_suffix(".py")
    name = f"{module.__name__.rpartition('.')[0]}.twin"  # in its package, for relative imports
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
