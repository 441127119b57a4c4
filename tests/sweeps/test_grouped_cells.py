"""Which cells train together, and what is told of checkpoints that they don't continue."""

from __future__ import annotations

import pytest
from test_programs import DEFAULTS

from iclbench import QueuedJob
from iclbench.runs.training import checkpoint_of
from iclbench.sweeps.grouped_cells import group_missing
from iclbench.sweeps.programs import jobs_of
from iclbench.sweeps.sweep import plan_sweep


def test_checkpoints_that_no_program_continues_are_told_before_a_run(tmp_path, cli):
    """One may still undo the change of the sweep that makes them useless."""
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[defaults]\ntask = "least-squares"\nrecipe = "smoke"\n'
        '[[grid]]\nmodel = "baseconv"\nseeds = 2\n'
    )
    _, programs = plan_sweep(file, out=tmp_path)
    other = checkpoint_of(["0" * 16, "1" * 16], programs[0][0].program, tmp_path)
    other.parent.mkdir()
    other.touch()
    for option in ("--dry-run", "--status"):
        outcome = cli("sweep", file, "--out", tmp_path, option)
        assert "1 checkpoint of other groups of such runs can't be continued" in outcome.err
        assert str(other) in outcome.err


@pytest.mark.parametrize(("begun", "all_"), [(2, 3), (3, 4), (4, 5), (3, 7)])
def test_a_group_that_has_begun_is_continued_beside_cells_that_are_new(tmp_path, begun, all_):
    """Further rates join those that are in the middle of their training."""
    rates = [1e-3 * number for number in range(1, all_ + 1)]

    def programs(count):
        grid = {"model": "baseconv", "recipe_args": {"learning_rate": rates[:count]}}
        return plan_sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)[1]

    (first,) = programs(begun)
    path = checkpoint_of([cell.id for cell in first], first[0].program, tmp_path)
    path.parent.mkdir()
    path.touch()
    assert [len(program) for program in programs(all_)] == [begun, all_ - begun]
    assert [cell.id for cell in programs(all_)[0]] == [cell.id for cell in first]


def test_halves_that_have_begun_where_memory_was_short_are_continued(tmp_path):
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 3e-3, 4e-3]}}
    content = {"defaults": DEFAULTS, "grid": [grid]}
    _, (group,) = plan_sweep(content, out=tmp_path)
    path = checkpoint_of([cell.id for cell in group[2:]], group[0].program, tmp_path)
    path.parent.mkdir()
    path.touch()
    _, programs = plan_sweep(content, out=tmp_path)
    assert [[cell.id for cell in program] for program in programs] == [
        [cell.id for cell in part] for part in (group[:2], group[2:])
    ]


def test_a_run_that_has_begun_alone_stays_alone(tmp_path):
    """The others of its program may have left places since, and would lose its checkpoint."""
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 3e-3]}}
    content = {"defaults": DEFAULTS, "grid": [grid], "replicas": 2}
    cells, (pair, alone) = plan_sweep(content, out=tmp_path)
    assert (len(pair), len(alone)) == (2, 1)
    path = checkpoint_of([alone[0].id], alone[0].program, tmp_path)
    path.parent.mkdir()
    path.touch()
    missing = [pair[1], *alone]
    groups = group_missing([*cells.cells.values()], missing, 2, cells.store)
    assert sorted(group[0].id for group in groups) == sorted(cell.id for cell in missing)


def test_of_several_jobs_a_run_belongs_to_the_one_in_the_queue(tmp_path):
    """Another user's job of it, say, failed at the lock while this one trained."""
    content = {"defaults": DEFAULTS, "grid": [{"model": "zero"}]}
    _, ((cell,),) = plan_sweep(content, out=tmp_path)
    jobs = [
        QueuedJob("1", {"ids": [cell.id]}, "running", "", ""),
        QueuedJob("2", {"ids": [cell.id]}, "failed", "another process is training it", ""),
    ]
    ((group, job),) = jobs_of([cell], jobs)
    assert (group, job.id) == ([cell], "1")
