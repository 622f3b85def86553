"""The process from which Spark forks its Python workers, with all modules loaded.

Law: it is Spark's own daemon. What a worker would load first is already there, and frozen, so that
the cyclic GC, which Spark runs after each task, skips it.

    spark.python.daemon.module: see `session`
"""

from __future__ import annotations

import gc

import pyspark.worker
from pyspark.daemon import manager

from . import job

LOADED = (pyspark.worker, job)

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
