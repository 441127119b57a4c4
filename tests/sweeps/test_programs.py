"""Programs in a queue: what is submitted, what is followed, and what is submitted again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fake_queue import FakeQueue
from support import Shown

from iclbench import RecordStore, RunSpec, UsageError, submit_sweep, sweep
from iclbench.api.executor import QueuedJob
from iclbench.runs.plan import resolve
from iclbench.runs.settings import Settings
from iclbench.runs.training import checkpoint_of
from iclbench.sweeps import jobs, programs
from iclbench.sweeps.jobs import job_of, request_of, run_job
from iclbench.sweeps.programs import jobs_of

DEFAULTS = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "recipe_args": {"steps": 3},
    "seeds": 1,
    "eval_prompts": 32,
}
CONTENT = {
    "replicas": 2,
    "defaults": DEFAULTS,
    "grid": [
        {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 3e-3]}},
        {"model": "zero"},
    ],
}


@pytest.fixture
def queue(tmp_path):
    """An executor whose jobs wait until it is no longer held."""
    executor = FakeQueue(folder=tmp_path / "jobs" / "fake-queue")
    executor.held = True
    return executor


def test_only_what_has_neither_record_nor_job_is_submitted(tmp_path, queue):
    lines = []
    for _ in range(2):
        submit_sweep(CONTENT, executor=queue, out=tmp_path, report=lines.append)
    assert lines == [
        "4 runs: 0 skipped, 4 to run",
        "3 programs submitted, 0 in the queue already",
        "4 runs: 0 skipped, 4 in the queue, 0 to run",
        "0 programs submitted, 3 in the queue already",
    ]
    queue.run_next()
    queue.change(1, state="failed", reason="its node burnt")
    lines.clear()
    submit_sweep(CONTENT, executor=queue, out=tmp_path, report=lines.append)
    assert lines == [
        "4 runs: 2 skipped, 1 in the queue, 1 to run",
        "1 program submitted, 1 in the queue already",
    ]
    widths = [len(job.job["requests"]) for job in queue.queue()]
    assert widths == [2, 1, 1, 1]


def test_a_sweep_follows_the_jobs_that_are_in_the_queue(tmp_path, queue):
    submit_sweep(CONTENT, executor=queue, out=tmp_path)
    queue.run_next()
    queue.held = False
    lines = []
    result = sweep(CONTENT, executor=queue, out=tmp_path, report=lines.append)
    assert not result.failures
    # A second job ends when the queue is first asked.
    assert (len(result.records), result.already_done) == (4, 3)
    assert len(queue.queue()) == 3
    assert lines[0] == "4 runs: 3 skipped, 1 in the queue, 0 to run"
    assert sum("done" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("named", "start"),
    [
        (
            {"figure": {"x": "task_args.dim", "y": "squared_eror"}},
            "it won't be drawn: figure: unkn",
        ),
        ({"figure": {"maps": "connexion"}}, "it won't be drawn: figure: un"),
        ({"table": {"metrics": ["squared_eror"]}}, "table: no metric of the first record matches"),
    ],
)
def test_what_only_a_record_tells_is_said_after_the_first(tmp_path, named, start, provide):
    provide("metric", "shown", Shown)
    content = {
        "defaults": {**DEFAULTS, "metrics": ["shown"]},
        "grid": [{"model": ["zero", "averaging"]}],
        **named,
    }
    lines = []
    result = sweep(content, out=tmp_path, report=lines.append)
    assert len(result.records) == 2
    (line,) = [line for line in lines if line.startswith(start)]
    assert lines.index(line) < len(lines) - 1


def test_without_workers_nothing_would_run(tmp_path):
    for workers in (0, -1):
        with pytest.raises(UsageError, match=f"workers={workers}: there must"):
            sweep(CONTENT, out=tmp_path, workers=workers)


def test_a_checkpoint_that_no_program_continues_is_named(tmp_path):
    """Another rate, or another number of replicas, makes other groups."""
    plan = resolve(RunSpec(model="baseconv", **{**DEFAULTS, "seeds": (0,)}))
    other = checkpoint_of(["0" * 16, "1" * 16], plan.train_key, tmp_path)
    other.parent.mkdir()
    other.write_bytes(b"")
    lines: list[str] = []
    sweep(CONTENT, out=tmp_path, report=lines.append)
    told = "1 checkpoint of other groups of such runs can't be continued with these cells"
    assert [str(other) in line for line in lines if told in line] == [True]
    # Nothing is left to run then; who looks at the folder later would not know what it is.
    lines.clear()
    sweep(CONTENT, out=tmp_path, report=lines.append)
    assert any(told in line for line in lines)


def test_a_run_in_the_queue_is_known_by_its_id_however_it_is_asked_for(queue, tmp_path):
    """A default that is spelled out would otherwise submit the same run a second time."""
    grid = {"model": "baseconv"}
    content = {**CONTENT, "grid": [grid]}
    lines: list[str] = []
    submit_sweep(content, executor=queue, out=tmp_path)
    spelled = {**content, "grid": [{**grid, "model_args": {"causal": [True]}}]}
    submit_sweep(spelled, executor=queue, out=tmp_path, report=lines.append)
    assert lines[-1] == "0 programs submitted, 1 in the queue already"
    assert len(queue.queue()) == 1


def test_a_second_process_joins_the_jobs_of_one_that_died(queue, monkeypatch):
    jobs = [{"n": 1}, {"n": 2}, {"n": 1}]
    queue.submit(_number, jobs[:2], 2)  # and then its process dies
    queue.held = False
    looks = iter([True])

    def run_next():
        if not next(looks, False):  # at the first look both still wait
            FakeQueue.run_next(queue)

    monkeypatch.setattr(queue, "run_next", run_next)
    assert dict(queue.map(_number, jobs, 2)) == {0: 1, 1: 2, 2: 1}
    assert len(queue.queue()) == 2
    assert dict(queue.map(_number, jobs[:1], 2)) == {0: 1}
    assert len(queue.queue()) == 3


def test_a_job_that_another_process_cancels_is_not_waited_for(queue):
    (held,) = queue.submit(_number, [{"n": 1}], 1)
    changes = queue.follow([held])
    assert next(changes).state == "waiting"
    queue.cancel([held])
    (ended,) = changes
    assert str(ended.outcome) == "it was cancelled"


def _number(job):
    return job["n"]


def test_the_failure_of_a_job_is_that_of_its_cells_and_is_submitted_again(tmp_path, queue):
    queue.held, queue.broken = False, (0,)
    result = sweep(CONTENT, executor=queue, out=tmp_path)
    assert {(f.reason, f.log) for f in result.failures} == {("its node burnt", "0.log")}
    assert (len(result.failures), len(result.records)) == (2, 2)
    again = sweep(CONTENT, executor=queue, out=tmp_path)
    assert not again.failures
    assert (len(again.records), again.already_done) == (4, 2)


def test_a_cell_belongs_to_the_last_of_the_jobs_that_had_it():
    queued = [QueuedJob(name, {"ids": ["a"]}, "waiting") for name in ("0", "1")]
    queued.append(QueuedJob("2", {"requests": []}, "running"))  # a trial of a search
    assert [job.id for _, job in jobs_of([SimpleNamespace(id="a")], queued)] == ["1"]


def test_grids_that_need_weights_wait_for_them(tmp_path, queue):
    grid = [{"name": "first", "model": "baseconv"}, {"model": "baseconv", "init": "@first"}]
    content = {"defaults": DEFAULTS, "grid": grid}
    lines = []
    submit_sweep(content, executor=queue, out=tmp_path, report=lines.append)
    assert lines[-1] == "grids that take weights of these runs can be submitted once they are done"
    queue.run_next()
    submit_sweep(content, executor=queue, out=tmp_path, report=lines.append)
    assert lines[-1] == "1 program submitted, 0 in the queue already"
    assert len(queue.queue()) == 2


def test_an_executor_without_a_queue_can_not_be_left(tmp_path):
    with pytest.raises(UsageError, match="executor local has no queue to submit programs to"):
        submit_sweep(CONTENT, executor="local", out=tmp_path)
    with pytest.raises(UsageError, match="executor local: unknown field 'partition'"):
        sweep(CONTENT, executor_args={"partition": "gpu"}, out=tmp_path)


def test_several_workers_and_one_gpu_contradict_each_other(tmp_path, queue):
    with pytest.raises(UsageError, match="several workers use one GPU each; give --device cuda"):
        sweep(CONTENT, executor=queue, out=tmp_path, device="cuda:1")


def test_a_job_has_the_settings_that_matter_elsewhere(tmp_path):
    settings = Settings(tmp_path, "cpu", resume=False, checkpoint_seconds=5.0, eval_batch=16)
    request = request_of(RunSpec(model="zero", task="least-squares", eval_prompts=8))
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "run_plans", lambda plans, given: seen.append(given))
        run_job(job_of([request], settings))
    assert seen == [settings]


@pytest.fixture
def after_each_job(monkeypatch):
    """Calls a function with a job's settings once it has run, where nothing waits for records."""
    monkeypatch.setattr(programs, "RECORD_SECONDS", 0.0)

    def set_action(action):
        def run_and_act(job):
            outcome = run_job(job)
            action(job)
            return outcome

        run_and_act.__module__, run_and_act.__qualname__ = __name__, "run_and_act"
        monkeypatch.setitem(globals(), "run_and_act", run_and_act)
        monkeypatch.setattr(programs, "run_job", run_and_act)

    return set_action


def test_a_program_that_leaves_no_record_has_failed(tmp_path, queue, after_each_job):
    """Its machine has another disk of that name, or OUT was renamed."""

    def lose(job):
        for path in list(RecordStore(tmp_path).paths()):
            if path.name.startswith("baseconv"):
                path.unlink()

    queue.held = False
    after_each_job(lose)
    lines = []
    result = sweep(CONTENT, executor=queue, out=tmp_path, report=lines.append)
    assert [record.spec.model for record in result.records] == ["zero"]
    assert [f.reason for f in result.failures] == [
        f"its program ended without a record in {tmp_path}"
    ] * 3
    assert result.failures[0].log == "0.log"
    ended = [line.partition(": ")[2] for line in lines[1:] if line[0] == "["]
    reason = f"failed: its program ended without a record in {tmp_path}"
    assert ended == [reason, reason, "done"]


def test_a_record_that_is_seen_late_is_waited_for(tmp_path, queue, after_each_job, monkeypatch):
    hidden = tmp_path / "hidden"

    def hide(job):
        (path,) = RecordStore(tmp_path).paths()
        path.rename(hidden)
        monkeypatch.setattr(programs.time, "sleep", lambda seconds: hidden.rename(path))

    queue.held = False
    after_each_job(hide)
    monkeypatch.setattr(programs, "RECORD_SECONDS", 60.0)
    content = {"defaults": DEFAULTS, "grid": [{"model": "zero"}]}
    result = sweep(content, executor=queue, out=tmp_path)
    assert (len(result.records), result.failures) == (1, [])
    assert not hidden.exists()


def test_a_new_record_that_is_damaged_stops_no_other_program(tmp_path, queue, after_each_job):
    def damage(job):
        for path in RecordStore(tmp_path).paths():
            if path.name.startswith("baseconv"):
                path.write_text("{")

    queue.held = False
    after_each_job(damage)
    result = sweep(CONTENT, executor=queue, out=tmp_path)
    assert [record.spec.model for record in result.records] == ["zero"]
    assert len(result.damaged) == 3
    assert "it is truncated or not a record" in result.damaged[0]
