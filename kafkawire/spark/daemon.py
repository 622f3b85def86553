"""The process from which Spark forks its Python workers, with all modules loaded.

It is Spark's own daemon. What a worker would load first is already there, and frozen, so that
the cyclic GC, which Spark runs after each task, skips it.

    spark.python.daemon.module: see `session`
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from socket import socket
from typing import Final

Worker = Callable[[socket, bool], int]
"""`pyspark.daemon.worker`: serves one task of a connection, and returns 0 if there may be more."""

ARROW: Final = "kafkawire.capture.tables.arrow.importing"
"""Imports pyarrow."""

LOADED: Final = ("pyspark.worker", "kafkawire.spark.job")
"""What workers need."""

ARCHIVES: Final = ("pyspark", "python", "lib")
"""Where an installed pyspark has archives of itself and of py4j, below site-packages."""

SPARK_CORE: Final = re.compile(r"spark-core_[^/]*\.jar$")
"""The archive of Java classes that Spark adds to the module search path."""


def is_redundant(archive: str, path: Iterable[str]) -> bool:
    """Return whether an archive of a path has no modules of its own.

    It has classes of Java, or is that of a pyspark installed in a directory of the path.
    """
    if SPARK_CORE.search(archive):
        return True
    file = Path(archive)
    if file.suffix != ".zip" or file.parts[-4:-1] != ARCHIVES:
        return False
    packages = file.parents[3]
    package = file.name.partition(".")[0].partition("-")[0]
    return str(packages) in path and (packages / package / "__init__.py").is_file()


def prefer_installed() -> None:
    """Remove copies of installed packages from the module search path, where Spark puts them first.

    Modules of an archive are compiled each time, and each worker reads the list of its files again:
    that of Spark's classes has 6,000.
    """
    archives = [each for each in sys.path if is_redundant(each, sys.path)]
    for archive in archives:
        sys.path.remove(archive)
    for importer_path in [*sys.path_importer_cache]:
        if importer_path.startswith((*archives,)):
            del sys.path_importer_cache[importer_path]


def end_with_connection(worker: Worker) -> Worker:
    """Return a worker that ends silently when Java closes its connection.

    Spark closes those of idle workers when it stops; its worker then writes an error to the closed
    connection, and a traceback to the standard error stream.
    """

    def worker_of_connection(connection: socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return worker_of_connection


def main() -> None:
    """Load everything, and run Spark's daemon.

    The cyclic GC would look at all modules again and again, and find next to nothing.
    """
    gc.disable()
    prefer_installed()
    import_module(ARROW).import_arrow()
    for name in LOADED:
        import_module(name)
    from pyspark import daemon

    daemon.worker = end_with_connection(daemon.worker)  # type: ignore[assignment]
    gc.freeze()
    gc.enable()
    daemon.manager()


if __name__ == "__main__":
    main()
