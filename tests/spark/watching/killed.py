"""The program that a test kills: it watches a directory and kills itself at a given log line."""

from __future__ import annotations

import os
import signal
import sys

from kafkawire.spark import session
from kafkawire.spark.options import parse
from kafkawire.spark.watch import Finished, Mode, WatchOptions, watch

TABLES = ("exchanges", "connections", "group_events")
RULES = WatchOptions(Finished.RENAMED, batch_bytes=700_000)


def main(directory: str, output: str, last_words: str) -> None:
    spark = session("local[2]", settings={"spark.log.level": "OFF"})

    def log(text: str) -> None:
        print(text, flush=True)
        if last_words and text.startswith(last_words):
            os.kill(os.getpid(), signal.SIGKILL)

    watch(
        spark, directory, output, TABLES, parse({}), RULES, mode=Mode.END,
        clock=lambda: 0.0, sleep=lambda _: None, log=log,
    )  # fmt: skip
    print("ended", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
