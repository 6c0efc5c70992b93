"""The docs are true: commands run as written, generated pages are fresh, links lead somewhere."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.runtime.keywords import NodeKeywords
from ordercast.runtime.worker import Worker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    commands = [block.strip() for block in blocks("sh") if block.startswith("make ")]
    assert commands == ["make demo", "make test"]
    for command in commands:
        assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE)


def test_the_ci_runs_the_test_command_of_the_readme():
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_ten_lines_print_a_view_and_the_message(tmp_path):
    [example] = blocks("python")
    script = tmp_path / "example.py"
    script.write_text(example)
    done = run(f"{sys.executable} {script}", tmp_path)
    assert done.returncode == 0, done.stderr
    *views, message = done.stdout.splitlines()
    assert views and all(line.startswith("View(") for line in views)
    assert message == "Message(group='prices', sender='alice', body=b'IBM 191.2')"


def test_the_replicas_of_the_api_page_agree(tmp_path):
    page = (ROOT / "docs" / "API.md").read_text()
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    script = tmp_path / "replicas.py"
    script.write_text(example)
    done = run(f"{sys.executable} {script}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True"


def test_the_guest_of_the_api_page_is_heard(tmp_path):
    page = (ROOT / "docs" / "API.md").read_text()
    [example] = [e for e in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "send_to" in e]
    script = tmp_path / "guest.py"
    script.write_text(example)
    done = run(f"{sys.executable} {script}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ticker b'IBM 191.2'\n"


def test_the_sites_of_the_api_page_form_subgroups_as_it_says(tmp_path):
    page = (ROOT / "docs" / "API.md").read_text()
    [example] = [e for e in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "site=" in e]
    script = tmp_path / "sites.py"
    script.write_text(example)
    done = run(f"{sys.executable} {script}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"# {done.stdout.strip()}\n" in example


@pytest.mark.parametrize("settings", [oc.Udp, oc.IpMulticast])
def test_every_option_of_a_transport_stands_on_the_api_page(settings):
    page = (ROOT / "docs" / "API.md").read_text()
    missing = [name for name in settings.__struct_fields__ if f"\n| `{name}` | " not in page]
    assert not missing


def test_every_option_of_a_node_stands_on_the_api_page_under_one_subject():
    page = (ROOT / "docs" / "API.md").read_text()
    first, by_subject = page.split("\n## Options of a node\n")
    listed = re.findall(r"^\| `(\w+)` \|", by_subject.split("\n## Transports\n")[0], re.MULTILINE)
    assert sorted(listed) == sorted(NodeKeywords.__annotations__)
    table = first.split("<!-- generated: end -->")[0]
    assert len(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == 10


def test_a_worker_knows_every_command_that_the_api_page_shows():
    commands = re.findall(r'do\("(\w+)"', (ROOT / "docs" / "API.md").read_text())
    assert commands
    assert [name for name in commands if not hasattr(Worker, name)] == []


@pytest.mark.xdist_group("spark")
def test_the_trace_of_the_readme_is_judged_as_the_readme_says(tmp_path):
    [trace] = blocks("csv")
    (tmp_path / "trace.csv").write_text(trace)
    [command] = [block.strip() for block in blocks("sh") if "trace.csv" in block]
    done = run(command, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "b delivers m2 before m1" in " ".join(done.stdout.split())


@pytest.mark.xdist_group("spark")
def test_the_simulated_run_of_the_readme_is_judged_ok(tmp_path):
    [block] = [block for block in blocks("sh") if "simulate" in block]
    for command in block.strip().splitlines():
        done = run(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "violated" not in done.stdout.split("Judged over all")[0]


def test_generated_pages_are_what_the_code_says():
    pages = runpy.run_path(str(ROOT / "docs" / "build.py"))["pages"]()
    stale = [path.name for path, text in pages.items() if path.read_text() != text]
    assert not stale, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
