"""The process from which Spark forks its Python workers, with all modules loaded.

Law: it is Spark's own daemon. What a worker would load first is already there, and frozen, so that
the cyclic GC, which Spark runs after each task, skips it.

    spark.python.daemon.module: see `session`
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Final

from ..capture.tables.arrow.importing import import_arrow

LOADED: Final = ("pyspark.worker", "kafkawire.spark.job")
"""What workers need."""

ARCHIVES: Final = ("pyspark", "python", "lib")
"""Where an installed pyspark has archives of itself and of py4j, below site-packages."""


def is_copy(archive: str, path: Iterable[str]) -> bool:
    """Return whether an archive of a path is that of a pyspark installed in a directory of it."""
    file = Path(archive)
    if file.suffix != ".zip" or file.parts[-4:-1] != ARCHIVES:
        return False
    packages = file.parents[3]
    package = file.name.partition(".")[0].partition("-")[0]
    return str(packages) in path and (packages / package / "__init__.py").is_file()


def prefer_installed() -> None:
    """Remove copies of installed packages from the module search path, where Spark puts them first.

    Modules of an archive are compiled each time, and each task reads the list of its files again.
    """
    for archive in [each for each in sys.path if is_copy(each, sys.path)]:
        sys.path.remove(archive)
        sys.path_importer_cache.pop(archive, None)


def main() -> None:
    """Load everything, and run Spark's daemon."""
    prefer_installed()
    import_arrow()
    for name in LOADED:
        import_module(name)
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
