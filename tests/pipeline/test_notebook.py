"""The worked notebook: it runs, it shows what it showed, and it tells nothing about a machine."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "judge_a_trace.ipynb"
GUARD_SECONDS = 240
SAME_EACH_TIME = ("read", "verify", "measure", "own")  # which witnesses are kept may differ


def shown(notebook: Any) -> dict[str, list[str]]:
    """What each cell shows as text."""
    return {
        cell["id"]: [
            output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


@pytest.mark.xdist_group("servers")
def test_the_notebook_runs_and_shows_the_tables_that_are_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    before = shown(notebook)
    client = NotebookClient(
        notebook, timeout=GUARD_SECONDS, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    after = shown(notebook)
    assert before.keys() == after.keys()
    for cell in SAME_EACH_TIME:
        assert after[cell] == before[cell], "run `make notebook`"


def test_the_notebook_shows_verdicts_sentences_and_a_plot() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    texts = shown(notebook)
    assert re.search(r"total\.group +violated +violated +violated +ok", texts["verify"][0])
    assert "bob delivers m2 before m1" in texts["own"][0]
    [plot] = [cell for cell in notebook.cells if cell["id"] == "plot"]
    assert plot["outputs"][0]["data"]["image/svg+xml"].count("<polyline") == 4


def test_the_notebook_names_no_folder_of_a_machine_and_no_time_of_a_run() -> None:
    text = NOTEBOOK.read_text()
    folders = (str(Path.home()), sys.prefix, str(NOTEBOOK.parents[2]), "/home/", "/tmp/", "/Users/")
    assert [folder for folder in folders if folder in text] == []
    assert '"execution": {' not in text
