"""Spark's Java starts in half the time from an archive of the classes that it loads.

Most of the time in which a small trace is judged, Java loads and verifies some ten thousand
classes of Spark, the same ones every time. Java can keep them in a file that it maps into memory:
an archive of class data, and from Java 25 on an AOT cache. It is made once, by a process that
judges a tiny trace: when `make` sets up the environment, or in the background after the first
command that needed Spark. The file takes about 170 MB of the cache folder. Nothing depends on it:
Java goes without an archive that does not fit or is damaged. ORDERCAST_CLASS_ARCHIVE=off in the
environment neither uses nor makes one.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ordercast.pipeline.spark.java import cache_folder, find_java, major_version

VARIABLE = "ORDERCAST_CLASS_ARCHIVE"
PROGRAM = "from ordercast.pipeline.spark.class_archive import main; main()"
BACKGROUND = "--background"
AOT_SINCE = 25  # the first Java that makes an AOT cache in one step
KEPT = 3  # archives: one for each Java and Spark that was used last
LOCKED_SECONDS = 600  # a lock that is older was left by a process that was killed
END_SECONDS = 120  # Java needs about ten to write the archive as it ends
_QUIET = "-Xlog:disable"  # what it says of archives goes to standard output
_TRACE = """\
process,index,kind,message,group,sender
a,1,send,m1,g,
a,2,deliver,m1,g,a
b,1,deliver,m1,g,a
"""


def options(home: Path, environ: Mapping[str, str] = os.environ) -> str:
    """What to tell the Java of this folder: use the archive, if there is one."""
    archive = path(home, environ)
    if archive is None or not archive.exists():
        return ""
    with suppress(OSError):
        os.utime(archive)  # of several, the one that was not used for longest goes first
    use = "AOTCache" if _is_aot(home) else "SharedArchiveFile"
    return f"-XX:{use}={archive} {_QUIET}"


def make_later(home: Path, environ: Mapping[str, str] = os.environ) -> None:
    """When this program ends, a process of its own makes the archive, unless there is one."""
    archive = path(home, environ)
    if archive is not None and not archive.exists():
        atexit.unregister(_make_in_background)  # there may have been another session
        atexit.register(_make_in_background, archive)


def _make_in_background(archive: Path) -> None:
    if archive.exists():
        return
    with suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, BACKGROUND],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def make(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Make the archive of this Java and this Spark; None if there is none to make."""
    home = find_java(environ)
    archive = path(home, environ)
    if archive is None or archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    if not _locked(lock := archive.with_suffix(".lock")):
        return None  # somebody else makes it
    try:
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            _record(home, draft := Path(scratch, archive.name))
            draft.replace(archive)
        _drop_oldest(archive.parent)
    finally:
        lock.unlink(missing_ok=True)
    return archive


def _record(home: Path, draft: Path) -> None:
    """Judge a trace with a Java that writes the archive as it ends."""
    from ordercast.pipeline.read import read_traces
    from ordercast.pipeline.spark.session import local_session
    from ordercast.pipeline.verify import verify

    note = "AOTCacheOutput" if _is_aot(home) else "ArchiveClassesAtExit"
    spark = local_session("local[2]", java=f"-XX:{note}={draft} {_QUIET}")
    trace = draft.with_name("trace.csv")
    trace.write_text(_TRACE)
    verify(read_traces(spark, [trace])).collect()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(END_SECONDS)


def path(home: Path, environ: Mapping[str, str]) -> Path | None:
    """Where it is, or would be. Another Java, or another Spark, needs another one."""
    import pyspark

    if environ.get(VARIABLE) == "off":
        return None
    jars = Path(pyspark.__file__).parent / "jars"
    try:
        about = f"{home} {_release(home)} {jars} {jars.stat().st_mtime_ns}"
    except OSError:
        return None
    name = hashlib.sha256(about.encode()).hexdigest()[:12]
    return cache_folder(environ) / f"classes-{name}.jsa"


def _release(home: Path) -> str:
    return (home / "release").read_text(encoding="utf-8", errors="replace")


def _is_aot(home: Path) -> bool:
    version = re.search(r'^JAVA_VERSION="(\d[^"]*)"', _release(home), re.MULTILINE)
    return version is not None and major_version(version[1]) >= AOT_SINCE


def _locked(lock: Path) -> bool:
    with suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime > LOCKED_SECONDS:
            lock.unlink(missing_ok=True)
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _drop_oldest(folder: Path) -> None:
    archives = sorted(folder.glob("classes-*.jsa"), key=lambda one: one.stat().st_mtime)
    for archive in archives[:-KEPT]:
        archive.unlink(missing_ok=True)


def main() -> None:
    """Make it, and say where; in the background say nothing, and leave the machine to others."""
    if BACKGROUND in sys.argv:
        os.nice(10)
    archive = make()
    print("Spark's Java starts without an archive" if archive is None else archive)
