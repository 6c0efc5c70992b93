"""What goes wrong on a cluster, in one sentence in the place of two hundred lines of Java.

Spark reports a failed task as the text of its traceback. Here is what people can act on; anything
else is handed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from ordercast.errors import ConfigError

_PACKAGES = "pip install 'ordercast[pipeline]' brings all that is needed"


@contextmanager
def failures_explained() -> Iterator[None]:
    """Raise what Spark throws inside as `ConfigError` or `ConnectionError`, if we know it."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        known = explained(str(error))
        if known is None:
            if isinstance(error, Py4JNetworkError):
                raise _java_ended() from error
            raise
        raise known from error
    except ConnectionRefusedError as error:  # a second call to a Java process that is gone
        raise _java_ended() from error


def explained(text: str) -> Exception | None:
    """The same in a sentence, or None if we have none for it."""
    for pattern, error in _KNOWN:
        if found := re.search(pattern, text):
            return error(found)
    return None


def _missing_package(found: re.Match[str]) -> Exception:
    package = found[1].partition(".")[0]
    return ConfigError(
        f"the Python of a Spark worker has no package {package}; {_PACKAGES}. Which Python that is "
        "says PYSPARK_PYTHON, of this command or of the Spark Connect server"
    )


def _other_python(found: re.Match[str]) -> Exception:
    return ConfigError(
        f"the workers run Python {found[1]} and this is Python {found[2]}: they must have the same "
        "two numbers. PYSPARK_PYTHON chooses the Python of the workers"
    )


def _no_python(found: re.Match[str]) -> Exception:
    return ConfigError(
        f"a Spark worker cannot run {found[1]}: PYSPARK_PYTHON must name a Python on the workers"
    )


def _fixed_setting(found: re.Match[str]) -> Exception:
    return ConfigError(
        f"{found[1]} cannot be set on a session that runs; it belongs into the settings of the "
        "Spark Connect server"
    )


def _out_of_memory(found: re.Match[str]) -> Exception:
    return ConfigError(
        "a Spark executor ran out of memory; give it more, for example with "
        "--conf spark.executor.memory=4g or, for its Python, spark.executor.memoryOverhead=4g"
    )


def _worker_killed(_: re.Match[str]) -> Exception:
    return ConnectionError(
        "a Python worker of Spark was killed before its work was done, most often for want of "
        "memory: run the command again, with --master 'local[1]' if it was on this machine (less "
        "at a time), or with more memory on a cluster (--conf spark.executor.memoryOverhead=4g)"
    )


def _java_ended() -> Exception:
    return ConnectionError(
        "the Java process of Spark ended before its work was done, most often for want of memory: "
        "run the command again, with more memory free or with fewer traces"
    )


def _gone(found: re.Match[str]) -> Exception:
    return ConnectionError(f"the cluster ended the session: {found[0]}")


# A worker that is killed before it has said who it is: the connection to it breaks.
_BROKEN = (
    r"(?:io\.EOFException|io\.IOException: (?:Broken pipe|Connection reset)|net\.SocketException)"
)

_KNOWN: tuple[tuple[str, Callable[[re.Match[str]], Exception]], ...] = (
    (r"No module named '(?!ordercast)([\w.]+)'", _missing_package),
    (r"\[PACKAGE_NOT_INSTALLED\] (\w+)", _missing_package),
    (r"\[PYTHON_VERSION_MISMATCH\][^:]*: ?(\d+\.\d+)[^\d]+(\d+\.\d+)", _other_python),
    (r'Cannot run program "([^"]+)"', _no_python),
    (r'CANNOT_MODIFY_\w*CONFIG\][^"]*"([^"]+)"', _fixed_setting),
    (r"OutOfMemoryError|OOMKilled|exceeding memory limits", _out_of_memory),
    (r"Python worker (?:exited unexpectedly|failed to connect back)", _worker_killed),
    (
        rf"Lost task [^\n]*: java\.{_BROKEN}[^\n]*\s+at [\s\S]*?\.PythonWorkerFactory\.",
        _worker_killed,
    ),
    (r"Master removed our application[^\n]*", _gone),
    (r"All masters are unresponsive[^\n]*", _gone),
    (r"SparkContext was shut down", _gone),
    (r"ExecutorLostFailure[^\n]*", _gone),
    (r"StatusCode\.UNAVAILABLE[^\n]*", _gone),
)
