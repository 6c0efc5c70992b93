"""The archive from which Spark's Java starts: which Java uses which, and who makes it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ordercast.pipeline.spark import class_archive
from ordercast.pipeline.spark.class_archive import KEPT, LOCKED_SECONDS, make, options, path


def java(home: Path, version: str) -> Path:
    home.mkdir(parents=True)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What would be recorded, without Spark."""
    drafts: list[Path] = []

    def record(home: Path, draft: Path) -> None:
        drafts.append(draft)
        draft.write_text("classes")

    home = java(tmp_path / "java", "17.0.15")
    monkeypatch.setattr(class_archive, "find_java", lambda _: home)
    monkeypatch.setattr(class_archive, "_record", record)
    return drafts


@pytest.mark.parametrize(
    ("version", "option"), [("17.0.15", "-XX:SharedArchiveFile="), ("25.0.2", "-XX:AOTCache=")]
)
def test_every_java_is_told_of_its_archive_in_its_words(
    tmp_path: Path, environ: dict[str, str], version: str, option: str
) -> None:
    home = java(tmp_path / "java", version)
    assert options(home, environ) == ""
    archive = path(home, environ)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert options(home, environ).startswith(f"{option}{archive} ")
    assert options(home, environ | {"ORDERCAST_CLASS_ARCHIVE": "off"}) == ""


def test_another_java_needs_another_archive(tmp_path: Path, environ: dict[str, str]) -> None:
    homes = [java(tmp_path / str(k), version) for k, version in enumerate(("17.0.15", "17.0.16"))]
    assert len({path(home, environ) for home in homes}) == 2


def test_a_folder_that_does_not_say_what_java_it_is_gets_none(tmp_path: Path) -> None:
    assert path(tmp_path, {}) is None
    assert options(tmp_path, {}) == ""


def test_an_archive_is_made_once_and_put_in_place_whole(
    environ: dict[str, str], recorded: list[Path]
) -> None:
    archive = make(environ)
    assert archive is not None and archive.read_text() == "classes"
    assert make(environ) == archive
    assert len(recorded) == 1
    assert [one.name for one in archive.parent.iterdir()] == [archive.name]


def test_of_two_that_make_it_at_the_same_time_one_does(
    environ: dict[str, str], recorded: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    during: list[Path | None] = []
    record = class_archive._record
    monkeypatch.setattr(
        class_archive,
        "_record",
        lambda home, draft: (during.append(make(environ)), record(home, draft)),
    )
    assert make(environ) is not None
    assert during == [None]
    assert len(recorded) == 1


def test_the_lock_of_one_that_was_killed_does_not_last(
    environ: dict[str, str], recorded: list[Path]
) -> None:
    archive = path(class_archive.find_java({}), environ)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    lock = archive.with_suffix(".lock")
    lock.touch()
    assert make(environ) is None
    long_ago = time.time() - LOCKED_SECONDS - 1
    os.utime(lock, (long_ago, long_ago))
    assert make(environ) == archive


def test_archives_that_were_not_used_for_longest_go(
    environ: dict[str, str], recorded: list[Path]
) -> None:
    folder = Path(environ["XDG_CACHE_HOME"], "ordercast")
    folder.mkdir(parents=True)
    for age in range(1, KEPT + 2):
        former = folder / f"classes-{age}.jsa"
        former.touch()
        os.utime(former, (time.time() - 100 * age,) * 2)
    archive = make(environ)
    assert archive is not None
    left = {one.name for one in folder.iterdir()}
    assert left == {archive.name, *(f"classes-{age}.jsa" for age in range(1, KEPT))}
