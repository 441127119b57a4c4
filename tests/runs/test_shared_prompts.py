import threading

import pytest
from small_runs import TINY

from iclbench import RunSpec, run
from iclbench.runs import measure, shared_prompts
from iclbench.runs.plan import resolve


def test_the_thread_that_makes_prompts_ends_while_a_failure_is_kept(tmp_path, monkeypatch):
    """A traceback keeps the frames that it passed through, so nothing may wait for their end."""

    def fail(*_, **__):
        assert set(threading.enumerate()) - before
        raise ZeroDivisionError

    monkeypatch.setattr(shared_prompts, "PART_PROMPTS", 4)
    monkeypatch.setattr(measure, "evaluate", fail)
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError) as kept:
        run("zero", **TINY, out=tmp_path)
    assert kept.traceback
    assert set(threading.enumerate()) == before


def test_parts_hold_the_same_prompts_in_the_same_order(monkeypatch):
    plan = resolve(RunSpec(model="zero", **TINY))
    targets = {}
    for most in (4, 1024):
        monkeypatch.setattr(shared_prompts, "PART_PROMPTS", most)
        with shared_prompts.evaluation_parts(plan) as (parts, digest):
            taken = [batch.target for part in parts for batch in part]
        targets[most] = [value for target in taken for value in target.flatten().tolist()]
        assert len(taken) == -(-plan.spec.eval_prompts // most)
        targets[f"digest of {most}"] = digest.hexdigest()
    assert targets[4] == targets[1024]
    assert targets["digest of 4"] == targets["digest of 1024"]
