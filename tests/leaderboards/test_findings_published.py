"""The published findings: each criterion is of one cell of a study that is there."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from iclbench import RunSpec, run
from iclbench.api.config import parse_config
from iclbench.leaderboards.findings import judgements, read_findings
from iclbench.runs.plan import Plan, resolve
from iclbench.sweeps.fields import field_of
from iclbench.sweeps.files import expand, read_sweep_file

ROOT = Path(__file__).parents[2]

#: Where the studies of the published findings are.
FILES = {
    "least-squares-depth": ("tasks/iclbench_least_squares/sweeps/depth.toml", "hour"),
    "least-squares-features": ("tasks/iclbench_least_squares/sweeps/features.toml", "hour"),
    "least-squares-gradient-depth": (
        "tasks/iclbench_least_squares/sweeps/gradient-depth.toml", "hour"),
    "primitives-depth": ("tasks/iclbench_primitives/sweeps/depth.toml", "hour"),
    "gd-transformer-blocks": ("plugins/iclbench_gd_transformer/sweeps/blocks.toml", "hour"),
    "gd-transformer-matrices": ("plugins/iclbench_gd_transformer/sweeps/matrices.toml", "hour"),
    "linear-systems-block": ("tasks/iclbench_linear_systems/sweeps/block.toml", "quick"),
}  # fmt: skip


def plans_of(name: str) -> list[Plan]:
    path, size = FILES[name]
    file = read_sweep_file(ROOT / path).sized(size)
    cells = [cell for grid in file.grid for cell in expand(grid, file.defaults)]
    return [resolve(parse_config(RunSpec, cell, "cell")) for cell in cells]


@pytest.mark.parametrize("name", FILES)
def test_every_criterion_written_before_the_run_is_of_one_cell_of_its_study(name):
    specs = [SimpleNamespace(spec=plan.spec) for plan in plans_of(name)]
    findings = [one for one in read_findings(ROOT / "leaderboards")
                if one.records == name and not one.after_run]  # fmt: skip
    assert findings
    for one in findings:
        for part in filter(None, (one.first, one.second)):
            matching = [s for s in specs if all(field_of(s, k) == v for k, v in part.where.items())]
            assert len(matching) == 1, part.where


def test_every_published_finding_has_a_study():
    findings = read_findings(ROOT / "leaderboards")
    assert {one.records for one in findings if not one.after_run} == set(FILES)
    folders = {path.name for path in (ROOT / "leaderboards" / "studies").iterdir()}
    assert {one.records for one in findings if one.after_run} <= folders


def test_no_finding_of_the_repository_claims_what_its_source_leaves_open():
    findings = read_findings(ROOT / "leaderboards")
    beyond = [one for one in findings
              if re.search("^Beyond|leaves it open|reports no results", one.source)]  # fmt: skip
    assert beyond == [one for one in findings if one.own_question]


@pytest.mark.slow
def test_a_number_of_an_analysis_is_found(tmp_path):
    (plan,) = plans_of("gd-transformer-matrices")
    request = {**plan.request.model_dump(), "seeds": (0, 1), "eval_prompts": 16, "budget": "1s"}
    run(**request, out=tmp_path / "studies" / "gd-transformer-matrices")
    text = (ROOT / "leaderboards" / "findings.toml").read_text("utf-8")
    (tmp_path / "findings.toml").write_text(text.replace('budget = "20m"', 'budget = "1s"'))
    (judgement,) = [o for o in judgements(tmp_path, print) if o.verdict != "not run"]
    assert len(judgement.by_seed) == 2
