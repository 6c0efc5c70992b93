"""Run the notebook of this folder and keep what it shows, without times and versions of a run."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("judge_a_trace.ipynb")

if __name__ == "__main__":
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    metadata = dict(notebook.metadata)
    NotebookClient(notebook, record_timing=False).execute()
    notebook.metadata = metadata
    nbformat.write(notebook, NOTEBOOK)
