"""Records with everything that the further pages of the site show, made without training."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from iclbench import Record, RecordStore
from iclbench.api.record import GraderReport
from iclbench.runs.objects import Objects
from iclbench.runs.store import read_record

#: An analysis with sound maps and plots, and with some that must be left out.
ANALYSIS = {
    "deviation": 0.5,
    "layers": [{"error": 1.0, "misfit": [1.0, 0.1, 0.01]}, {"error": 0.5, "misfit": [0.5]}],
    "maps": [
        {"name": "AᵀB", "values": [[1.0, -2.0], [0.5, None]]},
        {
            "name": "p(y | x)",
            "values": [[0.1, 0.2], [0.3, 0.4]],
            "x": [0.0, 1.0],
            "y": [0.0, 1.0],
            "points": {"x": [0.0], "y": [1.0], "text": ["<i>7</i>"]},
        },
        {"name": "uneven", "values": [[1.0], [1.0, 2.0]]},
        {"name": "text", "values": [["x"]]},
    ],
    "plots": [
        {
            "title": "Error of <each> layer",
            "x": {"title": "layer"},
            "y": {"title": "error", "log": True},
            "lines": [{"name": "model", "path": "layers.*.error"}],
        },
        {"title": "nothing", "lines": [{"name": "a", "path": "no.such.path"}]},
        "no plot",
    ],
}
ENDINGS = [
    {"beginning": "There was once", "ending": "a <b>fox</b>.", "scores": {"words": 2.0, "x": None}},
    {"beginning": "Two kings", "ending": "met.", "scores": "none"},
]

NOTES = """
[[study]]
records = "least-squares-depth"
question = "Does depth help?"
source = "A. Author 2025, Figure 2"
link = "https://arxiv.org/abs/2503.12295"
shows = "Deeper models are more precise."
metric = "mean squared error"
published = [
    { name = "a deep model", value = 1e-7, approximate = true },
    { name = "a shallow model", value = 2e-4, bound = "above" },
]
"""
FINDING = """
[[finding]]
records = "least-squares-depth"
source = "A. Author 2025, Figure 2"
claim = "Depth helps."
criterion = "One layer's error is at least 100 times that of two."
written = 2026-11-23
after_run = true
compare = "ratio"
first = { metric = "squared_error", where = { "model_args.layers" = 1 } }
second = { metric = "squared_error", where = { "model_args.layers" = 2 } }
reproduced = [100, inf]
contradicted = [0, 1]

[[finding]]
records = "nowhere"
source = "A. Author 2025, Figure 3"
claim = "A claim without records."
criterion = "None."
written = 2026-11-23
compare = "value"
first = { metric = "squared_error", where = {} }
reproduced = [0, 1]
contradicted = [2, 3]
"""


def make_rich(folder: Path, leaderboards: Path) -> Path:
    """Fill `folder` with the records of `leaderboards`, changed, a study of two, and its texts."""
    shutil.copytree(leaderboards / "records", folder / "records")
    store = RecordStore(folder / "records")
    trained = []
    for path in list(store.paths()):
        record = read_record(path)
        if record.spec.origin == "trained":
            trained.append((path, record))
    objects = Objects(folder / "records")
    for number, (_, record) in enumerate(trained):
        store.write(_changed(record, number, objects))
    # One that was not trained has endings too.
    known = map(read_record, list(store.paths()))
    solver = next(
        r for r in known if (r.spec.model, r.spec.dtype) == ("least-squares-qr", "float32")
    )
    store.write(solver.model_copy(update={"grader": _graded(objects)}).sealed())
    study = folder / "studies" / "least-squares-depth"
    shutil.copytree(leaderboards / "records" / "objects", study / "objects")
    for path, _ in trained:
        target = study / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(leaderboards / "records" / path.parent.name / path.name, target)
    (folder / "studies.toml").write_text(NOTES, "utf-8")
    (folder / "findings.toml").write_text(FINDING, "utf-8")
    return folder


def _changed(record: Record, number: int, objects: Objects) -> Record:
    """The record with a shift, an analysis, endings, and a state of its own size."""
    shifted = record.main.model_copy(update={"shift": "noisy"})
    changes = {
        "evaluations": {"main": record.main, "noisy": shifted},
        "not_applicable": {"longer": "it has <b>positions</b>"},
        "analyses": {"attention-maps": [ANALYSIS for _ in record.seeds]},
        "grader": _graded(objects),
        "state_sizes": (64 * (number + 1),),
    }
    return record.model_copy(update=changes).sealed()


def _graded(objects: Objects) -> GraderReport:
    """The report of a grader that read two endings."""
    lines = "".join(json.dumps(line) + "\n" for line in ENDINGS) + "no JSON\n[1]\n"
    answers = objects.write(lines.encode("ascii"), "jsonl")
    return GraderReport(name="reader", completions=2, answers=answers)
