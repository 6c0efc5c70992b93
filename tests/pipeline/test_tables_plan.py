"""Which runs are judged, what the manifest survives, who may write: all of it without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.tables.files import LONGEST_NAME, check_names
from ordercast.pipeline.tables.judge_version import judge_version
from ordercast.pipeline.tables.manifest import (
    MANIFEST,
    JudgedRun,
    Manifest,
    SeenFile,
    check_folder,
    load_manifest,
    save_manifest,
    writing,
)
from ordercast.pipeline.tables.plan import Plan, plan_runs, unknown_files

MADE = JudgedRun("", 1, "a judge", quiescent=False)
FILES = {
    "/one": SeenFile(10, 1, "", ("r1",)),
    "/both": SeenFile(20, 1, "", ("r1", "r2")),
    "/two": SeenFile(30, 1, "", ("r2",)),
}


def finished(plan: Plan) -> Manifest:
    return Manifest().with_files(FILES).with_runs(plan.judge)


def test_everything_is_judged_once() -> None:
    plan = plan_runs(FILES, Manifest(), MADE)
    assert (list(plan.judge), plan.kept, plan.replaced) == (["r1", "r2"], (), ())
    assert plan.files == {"r1": ("/one", "/both"), "r2": ("/both", "/two")}
    again = plan_runs(FILES, finished(plan), MADE)
    assert (list(again.judge), again.kept) == ([], ("r1", "r2"))


@pytest.mark.parametrize(
    ("change", "anew"),
    [
        ({"/one": SeenFile(11, 1, "", ("r1",))}, ["r1"]),
        ({"/one": SeenFile(10, 2, "", ("r1",))}, ["r1"]),
        ({"/one": SeenFile(10, 1, "a mapping", ("r1",))}, ["r1"]),
        ({"/three": SeenFile(1, 1, "", ("r2", "r3"))}, ["r2", "r3"]),
        ({"/both": SeenFile(21, 1, "", ("r1", "r2"))}, ["r1", "r2"]),
    ],
)
def test_a_run_is_judged_anew_if_any_of_its_files_changed(
    change: dict[str, SeenFile], anew: list[str]
) -> None:
    before = finished(plan_runs(FILES, Manifest(), MADE))
    plan = plan_runs({**FILES, **change}, before, MADE)
    assert list(plan.judge) == anew
    assert list(plan.replaced) == [run for run in anew if run != "r3"]


@pytest.mark.parametrize(
    "made",
    [
        JudgedRun("", 2, "a judge", quiescent=False),
        JudgedRun("", 1, "another", quiescent=False),
        JudgedRun("", 1, "a judge", quiescent=True),
    ],
)
def test_a_run_is_judged_anew_by_another_judge_or_with_other_options(made: JudgedRun) -> None:
    before = finished(plan_runs(FILES, Manifest(), MADE))
    assert list(plan_runs(FILES, before, made).judge) == ["r1", "r2"]


def test_a_run_that_was_not_finished_is_judged_although_its_files_are_known() -> None:
    before = finished(plan_runs(FILES, Manifest(), MADE)).without_runs(["r2"])
    assert list(plan_runs(FILES, before, MADE).judge) == ["r2"]


def test_only_new_and_changed_files_are_looked_into() -> None:
    known = Manifest(files=FILES)
    now = {
        "/one": SeenFile(10, 1, ""),
        "/both": SeenFile(20, 2, ""),
        "/two": SeenFile(30, 1, "a mapping"),
        "/three": SeenFile(1, 1, ""),
    }
    assert unknown_files(now, known) == ["/both", "/two", "/three"]


def test_a_manifest_comes_back_as_it_was_written_and_forgets_files_that_are_gone(
    tmp_path: Path,
) -> None:
    assert load_manifest(tmp_path) == Manifest()
    here = tmp_path / "ü"
    here.touch()
    files = {str(here): SeenFile(0, 1, "", ("",)), "/gone": SeenFile(1, 1, "")}
    save_manifest(tmp_path, Manifest(files, {"": MADE}))
    back = load_manifest(tmp_path)
    assert back == Manifest(files, {"": MADE})
    assert list(back.with_files({}).files) == [str(here)]


def test_a_file_that_is_no_manifest_is_named_and_not_overlooked(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"files": []}')
    with pytest.raises(TraceError, match=r"_manifest\.json: not a manifest .*judged anew"):
        load_manifest(tmp_path)


def test_folders_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "clean" / "run=a").mkdir(parents=True)
    with pytest.raises(UsageError, match="has 'clean' and no _manifest"):
        check_folder(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file; tables need a folder"):
        check_folder(tmp_path / "file")


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from ordercast.pipeline.tables.manifest import writing\n"
        "with writing(Path(sys.argv[1])):\n    print('mine', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        with pytest.raises(UsageError, match=f"process {other.pid} on .* is writing"):
            writing(tmp_path).__enter__()
        other.kill()  # a dead writer holds nothing
        other.wait()
    with writing(tmp_path):
        pass


def test_a_name_that_no_folder_can_have_is_refused() -> None:
    check_names(["", "007", "a/b", "ü" * (LONGEST_NAME // 2), "/" * (LONGEST_NAME // 3)])
    for name in ("ü" * (LONGEST_NAME // 2 + 1), "/" * (LONGEST_NAME // 3 + 1), "a\0b"):
        with pytest.raises(ValueError, match="folder"):
            check_names(["good", name])
    with pytest.raises(ValueError, match="cannot have a folder"):
        check_names(["__HIVE_DEFAULT_PARTITION__"])


def test_the_judge_is_told_by_its_code() -> None:
    assert judge_version() == judge_version()
    assert len(judge_version()) == 12
