"""Send this package to the executors of a cluster, so that nobody has to install it there.

An executor is told the name of a function of ours and imports it. What it imports is the package
of the driver, as one zip file: also where another version is installed on the workers. What the
functions need themselves (pyarrow, numpy, numba, msgspec) must be there already.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakSet

from pyspark.sql import DataFrame

InTask = Callable[[Iterable[Any]], Iterator[Any]]  # record batches in, record batches out

_PACKAGE = Path(__file__).parents[2]
_shipped: WeakSet[Any] = WeakSet()  # sessions that have it
_SAME_TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same zip, whenever it is made


def ship(spark: Any) -> None:
    """Make `ordercast` importable in the tasks of this session, unless they run on this machine.

    Calling it again does nothing. The session may be of either kind, classic or Connect.
    """
    if spark not in _shipped and not runs_here(spark):
        spark.addArtifacts(str(package_zip()), pyfile=True)
        _shipped.add(spark)


def by_tasks(rows: DataFrame, function: InTask, schema: Any) -> DataFrame:
    """`rows.mapInArrow`, for a function of this package."""
    ship(rows.sparkSession)
    return rows.mapInArrow(function, schema)


def runs_here(spark: Any) -> bool:
    """Do tasks run in processes started by this one, with what is installed here?"""
    if is_connect(spark):
        return False
    master: str = spark.sparkContext.master
    return is_local(master)


def is_local(master: str) -> bool:
    """`local`, `local[4]`, `local[*]`; not `local-cluster[...]`, which has executors."""
    return master == "local" or master.startswith("local[")


def is_connect(spark: Any) -> bool:
    """Is this a session of Spark Connect? It has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def package_zip() -> Path:
    """The package as a zip file, which is there until this process ends."""
    content = _zipped(_PACKAGE)
    path = Path(_folder().name, f"ordercast-{hashlib.sha256(content).hexdigest()[:12]}.zip")
    path.write_bytes(content)
    return path


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="ordercast-")


def _zipped(package: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                name = file.relative_to(package.parent).as_posix()
                archive.writestr(zipfile.ZipInfo(name, _SAME_TIME), file.read_bytes())
    return buffer.getvalue()
