"""What Spark forks its Python workers from, with all loaded that they need.

Law: it is Spark's own daemon; only what a worker would load first is there already, and is passed
over when garbage is looked for, as Spark has it done after each task.

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
