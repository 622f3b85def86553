"""Sessions, and errors of workers."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafkawire.spark import daemon, job
from kafkawire.spark.errors import JobFailed, NoJava, OutOfOrder, ascii_safe, one_line_errors
from kafkawire.spark.options import parse
from kafkawire.spark.plan import planning
from kafkawire.spark.session import PLAIN_PLANS, SOCKETS_IN, check_java, job_session
from kafkawire.spark.shuffle import tasks
from kafkawire.spark.shuffle.tasks import tune
from tests.conftest import FIXTURES


def test_settings_of_the_session(spark: SparkSession) -> None:
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == "8m"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.getConf().get("spark.driver.memory") == "512m"
    assert spark.sparkContext.environment["ARROW_DEFAULT_MEMORY_POOL"] == "system"
    folder = Path(spark.sparkContext.getConf().get(SOCKETS_IN) or "")
    assert folder.stat().st_mode & 0o077 == 0


def test_workers_are_forked_with_modules_loaded(spark: SparkSession) -> None:
    def worker(_: int) -> tuple[bool, list[str], int, int, str]:
        import gc
        import os
        import sys

        loaded = "kafkawire.spark.write.shared_directory" in sys.modules
        files = [sys.modules[name].__file__ or "" for name in ("pyspark", "py4j", "pyspark.worker")]
        archives = sum("zipimport" in str(each) for each in sys.path_importer_cache.values())
        assert gc.isenabled()
        with open(f"/proc/{os.getppid()}/cmdline") as file:
            return loaded, files, archives, gc.get_freeze_count(), file.read()

    numbers: Any = spark.sparkContext.parallelize(range(2), 2).map(worker)
    for loaded, files, archives, frozen, command in numbers.collect():
        assert loaded
        assert not archives  # a worker would read the list of their files
        assert not any(".zip" in each for each in files)
        assert frozen > 10_000
        assert "kafkawire.spark.daemon" in command


def test_workers_import_pandas_only_for_functions_of_pandas(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a third of the time in which their modules are loaded."""
    # with another environment they are new: those of the tests before may have imported it
    monkeypatch.setitem(spark.sparkContext.environment, "KAFKAWIRE_NEW_WORKERS", "1")

    def loaded(_: int) -> bool:
        return "pandas" in sys.modules

    numbers: Any = spark.sparkContext.parallelize(range(2), 2)
    assert not any(numbers.map(loaded).collect())

    def doubled(frames: Iterable[Any]) -> Iterator[Any]:
        for frame in frames:
            yield frame.assign(id=frame.id * 2)

    rows = spark.range(5).mapInPandas(doubled, "id long").collect()
    assert [row["id"] for row in rows] == [0, 2, 4, 6, 8]


def test_a_job_does_not_make_workers_import_pandas(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pyarrow would, to find types and to make numpy arrays of its own."""
    monkeypatch.setitem(spark.sparkContext.environment, "KAFKAWIRE_NEW_WORKERS", "2")
    tables = ["exchanges", "partitions", "records", "group_events"]
    file = str(FIXTURES / "captures" / "ck-txn.pcap")
    made = job.run(spark, [file], str(tmp_path), tables, parse({"splitBytes": "9k"}))
    assert made["splits"] > 1

    def loaded(_: int) -> bool:
        return "pandas" in sys.modules

    numbers: Any = spark.sparkContext.parallelize(range(2), 2)
    assert not any(numbers.map(loaded).collect())


class Starting:
    """Stands for a session whose workers start until they are let go. events: what happened."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.go = Event()

    def get(self) -> None:
        """Wait for the workers: the method of a Java `Future`."""
        assert self.go.wait(10)
        self.events.append("workers")
        raise RuntimeError("they could not start")

    def stop(self) -> None:
        self.events.append("stop")


def test_workers_start_in_the_background_and_stop_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether they can start or not. No thread is left behind."""
    module = import_module("kafkawire.spark.session")
    exits: list[Any] = []
    monkeypatch.setattr(module, "begin_workers", lambda spark: spark)
    monkeypatch.setattr("atexit.register", lambda *call: exits.append(call))
    before = set(threading.enumerate())
    session: Any = Starting()
    module._start_workers(session)  # which returns at once
    assert session.events == []
    (thread,) = set(threading.enumerate()) - before

    def join(_: float) -> None:
        session.go.set()
        Thread.join(thread, 10)

    monkeypatch.setattr(thread, "join", join)
    session.stop()
    assert session.events == ["workers", "stop"]
    assert set(threading.enumerate()) == before
    ((_, seconds),) = exits
    assert seconds == module.STOP_SECONDS


def test_a_worker_whose_connection_is_closed_ends_silently() -> None:
    """Spark's own raises, and its daemon prints the traceback."""
    script = (
        "import socket\n"
        "from kafkawire.spark.daemon import end_with_connection\n"
        "from pyspark.daemon import worker\n"
        "for serve in (end_with_connection(worker), worker):\n"
        "    ours, java = socket.socketpair()\n"
        "    java.close()\n"
        "    print(serve(ours, True), flush=True)\n"
    )
    environment = {**os.environ, "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "true"}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert run.stdout == "1\n"
    assert run.stderr.endswith("BrokenPipeError: [Errno 32] Broken pipe\n")


def test_a_session_starts_its_workers(tmp_path: Path) -> None:
    """Only a new one does: the running one is returned as it is."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from kafkawire.spark import session\n"
        "module = sys.modules['kafkawire.spark.session']\n"
        "begin, futures = module.begin_workers, []\n"
        "def begin_workers(spark):\n"
        "    futures.append(begin(spark))\n"
        "    return futures[-1]\n"
        "module.begin_workers = begin_workers\n"
        "spark = session('local[2]')\n"
        "session('local[2]')\n"
        "spark.stop()\n"
        "print([future.get() for future in futures])\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["[2]"]
    assert "ERROR Executor" not in run.stderr
    assert "Traceback" not in run.stderr


class Context:
    """Stands for a SparkContext. begun: how often workers were started."""

    defaultParallelism = 2

    def __init__(self) -> None:
        self.begun = 0
        self.sparkContext = self._jrdd = self

    def parallelize(self, *_: object) -> Context:
        return self

    mapPartitions = parallelize

    def countAsync(self) -> int:
        self.begun += 1
        return self.begun


def test_workers_that_are_still_there_are_not_started_again() -> None:
    """Those of each context are counted on their own."""
    contexts: list[Any] = [Context(), Context()]
    for at, begun in ((0.0, 1), (tasks.IDLE_SECONDS - 1, 1), (tasks.IDLE_SECONDS, 2)):
        for context in contexts:
            assert tasks.begin_workers(context, iter([at]).__next__) == begun
            assert context.begun == begun


def test_installed_packages_are_preferred_to_copies_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archives of another Spark, and of packages that are not installed, stay. That of Spark's
    classes is removed.
    """
    installed, other = tmp_path / "site-packages", tmp_path / "spark"
    for package in ("pyspark", "py4j"):
        (installed / package).mkdir(parents=True)
        (installed / package / "__init__.py").touch()
    of_spark = [
        str(other / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.1-src.zip")
    ]
    names = ("pyspark.zip", "py4j-0.1-src.zip", "more.zip")
    copies = [str(installed / "pyspark" / "python" / "lib" / name) for name in names]
    path = [*copies, *of_spark, "/mine/x.zip", "/mine/x.jar"]
    classes = str(other / "jars" / "spark-core_2.13-4.3.0.jar")
    known = {classes: None, f"{classes}/org": None, copies[0]: None, copies[2]: None}
    monkeypatch.setattr("sys.path", [*path, classes])
    monkeypatch.setattr("sys.path_importer_cache", known)
    daemon.prefer_installed()
    assert sys.path == path
    assert [*known] == [copies[0], copies[2]]
    monkeypatch.setattr("sys.path", [*path, str(installed)])
    daemon.prefer_installed()
    assert sys.path == [copies[2], *of_spark, "/mine/x.zip", "/mine/x.jar", str(installed)]
    assert [*known] == [copies[2]]


def test_modules_are_loaded_without_the_cyclic_gc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers run it again."""
    said: list[tuple[str, bool]] = []

    def load(name: str) -> SimpleNamespace:
        said.append((name, gc.isenabled()))
        return SimpleNamespace(import_arrow=lambda: None)

    monkeypatch.setattr(daemon, "import_module", load)
    monkeypatch.setattr(daemon, "prefer_installed", lambda: None)
    monkeypatch.setattr("gc.freeze", lambda: said.append(("freeze", gc.isenabled())))
    monkeypatch.setattr("gc.collect", None)
    monkeypatch.setattr("pyspark.daemon.worker", None)
    monkeypatch.setattr("pyspark.daemon.manager", lambda: said.append(("", gc.isenabled())))
    daemon.main()
    loaded = [(name, False) for name in (daemon.ARROW, *daemon.LOADED)]
    assert said == [*loaded, ("freeze", False), ("", True)]


def test_workers_start_before_inputs_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    session: Any = SimpleNamespace(version="4.3.0")

    def listed(*_: object, **__: object) -> None:
        raise FileNotFoundError(said)

    monkeypatch.setattr(planning, "begin_workers", lambda _: said.append("workers"))
    monkeypatch.setattr(planning, "inputs", listed)
    with pytest.raises(FileNotFoundError, match="workers"):
        job.run(session, ["x.pcap"], "out", ["exchanges"], parse({}))
    assert said == ["workers"]


def test_what_is_frozen_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count walks over all frozen objects: 10 ms for each step of a task."""
    counts = iter([1])
    monkeypatch.setattr("gc.get_freeze_count", lambda: next(counts))
    tune.cache_clear()
    tune()
    tune()


def test_a_job_session_leaves_the_other_one_unchanged(spark: SparkSession) -> None:
    before = {key: spark.conf.get(key, None) for key in PLAIN_PLANS}
    own = job_session(spark)
    assert {key: own.conf.get(key) for key in PLAIN_PLANS} == PLAIN_PLANS
    assert {key: spark.conf.get(key, None) for key in PLAIN_PLANS} == before
    assert before != PLAIN_PLANS
    assert own.sparkContext is spark.sparkContext
    assert own.conf.get("spark.sql.session.timeZone") == "UTC"


def java(folder: Path, printed: str) -> Path:
    """Make a fake java."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ('openjdk version "1.8.0_392"', "is Java 8; set JAVA_HOME to a newer one"),
        ('java version "11.0.2" 2019', "is Java 11"),
        ("nothing", "cannot determine the version"),
    ],
)
def test_an_old_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, message: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, printed)))
    with pytest.raises(NoJava, match="Spark needs Java 17 or newer: ") as caught:
        check_java()
    assert message in str(caught.value)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="has no bin/java"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava, match="java is not on the PATH"):
        check_java()


@pytest.mark.timeout(120)
def test_a_non_ascii_exception_fails_the_job_without_hanging(
    spark: SparkSession,
) -> None:
    @ascii_safe
    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise ValueError(b"caf\xe9 \xff".decode("utf-8", "surrogateescape"))

    frame: Any = spark.range(3).mapInArrow(step, "id long")
    with pytest.raises(Exception, match=r"WorkerError: ValueError: caf.udce9 .udcff"):
        frame.collect()


@pytest.mark.parametrize(
    ("error", "printed"),
    [
        (OSError(28, "No space left", "/tables"), "[Errno 28] No space left: '/tables'"),
        (OutOfOrder(1, 7), "packet 7 (rows of kind 1) is out of order"),
        (ValueError("a defect"), None),
        (KeyError(), None),
    ],
)
def test_one_line_errors_keep_tracebacks_of_bugs(
    spark: SparkSession, error: Exception, printed: str | None
) -> None:
    @ascii_safe
    def step(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise error
        yield

    frame: Any = spark.range(3).mapInArrow(step, "id long")
    with (
        pytest.raises(PySparkException if printed is None else JobFailed) as caught,
        one_line_errors(),
    ):
        frame.collect()
    if printed is None:
        assert "Traceback" in str(caught.value)
        assert type(error).__name__ in str(caught.value)
    else:
        assert str(caught.value) == printed


def test_errors_of_spark_are_one_line(spark: SparkSession) -> None:
    with pytest.raises(JobFailed, match="nowhere") as caught, one_line_errors():
        spark.sql("SELECT * FROM nowhere")
    assert "\n" not in str(caught.value)
    java: Any = spark.sparkContext._jvm
    with pytest.raises(JobFailed, match='For input string: "x"'), one_line_errors():
        java.java.lang.Integer.parseInt("x")


def test_errors_pickle() -> None:
    import pickle

    error = OutOfOrder(1, 7)
    assert (
        str(pickle.loads(pickle.dumps(error)))
        == str(error)
        == ("packet 7 (rows of kind 1) is out of order")
    )
