"""Modules in Python that take the place of those in C where nothing is compiled."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def twin(module: ModuleType) -> ModuleType:
    """Load the source that lies beside a module, compiled or not."""
    path = Path(module.__file__ or "").parent / f"{module.__name__.rpartition('.')[2]}.py"
    spec = importlib.util.spec_from_file_location("twin", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
