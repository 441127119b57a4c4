"""Answers to the first prompts: in records, verified, and added to records without them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from forging import reseal
from small_runs import TINY

from iclbench import RecordStore, run, verify
from iclbench.runs.first_answers import as_array, as_numbers, first_answers
from iclbench.runs.load import load_task
from iclbench.runs.measure import Measured
from iclbench.runs.rounding import ANSWERS, spread
from iclbench.runs.store import read_record, read_values
from iclbench.runs.values import Arithmetic, compare_answers


def edited(path, answers):
    return reseal(path, lambda content: content["evaluations"]["main"].update(answers=answers))


def failing(path):
    return {check.name for check in verify(path) if not check.holds}


def test_the_answers_have_the_errors_of_the_record(copied):
    main = read_record(copied).main
    answers = as_array(main.answers)
    assert answers.shape == (2, 3, 1)
    task = load_task("least-squares", dim=2, examples=4)
    batch = task.evaluation_batches(64, 0, torch.float32)[0]
    errors = (answers[:, :, 0] - batch.target[:3].double().flatten().numpy()) ** 2
    recorded = read_values(copied, main.values)["squared_error"][:, :3]
    # A batch of three adds in another order than one of all prompts.
    np.testing.assert_allclose(errors, recorded, rtol=1e-4)


@pytest.mark.parametrize("forged", [
    lambda answers: [[[2 * v[0]] for v in prompts] for prompts in answers],
    lambda answers: answers[::-1],
    lambda answers: [[[None] for _ in prompts] for prompts in answers],
])  # fmt: skip
def test_forged_answers_do_not_hold(copied, forged):
    answers = read_record(copied).main.answers
    names = failing(edited(copied, forged(answers)))
    assert len(names) == 1
    assert next(iter(names)).startswith("answers to the first prompts")


def arithmetic(size=1.0):
    return Arithmetic("float32", {}, size, {})


def test_no_seed_hides_what_another_did_not_answer():
    """A diverged seed, or one with large answers, gives the others no tolerance."""
    sound = np.array([[[0.1], [0.2], [0.3]]])
    forged = np.array([[[999.0], [-999.0], [7.0]]])
    for other in (np.nan, 1e8):
        lost = np.full_like(sound, other)
        now, recorded = np.concatenate([lost, sound]), np.concatenate([lost, forged])
        measured = Measured({}, {}, 0.0, 1.0, "", now)
        moved = [measured._replace(answers=now + 1e-8) for _ in range(3)]
        slack = spread(measured, moved)[ANSWERS]
        assert not compare_answers("answers", recorded, now, arithmetic(), slack).holds
        assert compare_answers("answers", now, now, arithmetic(), slack).holds


def test_a_record_without_answers_holds_and_gets_them(copied, cli):
    before = read_record(copied).main.answers
    reseal(copied, lambda content: content["evaluations"]["main"].pop("answers"))
    assert read_record(copied).main.answers is None
    assert failing(copied) == set()
    assert cli("verify", copied, "--write").code == 0
    assert read_record(copied).main.answers == before
    assert failing(copied) == set()


def test_a_record_without_the_size_of_the_state_holds_and_gets_it(copied, cli):
    before = read_record(copied).state_sizes
    assert before
    reseal(copied, lambda content: content.pop("state_sizes"))
    assert read_record(copied).state_sizes is None
    assert cli("verify", copied, "--write").code == 0
    assert read_record(copied).state_sizes == before


def test_a_record_in_float64_gets_both(tmp_path, cli):
    record = run("transformer", **TINY, dtype="float64", out=tmp_path)
    assert record.main.answers
    reseal(record.path, strip)
    assert cli("verify", record.path, "--write").code == 0
    again = read_record(record.path)
    assert (again.state_sizes, again.main.answers) == (record.state_sizes, record.main.answers)


def strip(content):
    """Take from a record what older ones lack."""
    content.pop("state_sizes")
    content["evaluations"]["main"].pop("answers")


def test_answers_that_do_not_fit_are_refused(copied, cli):
    answers = read_record(copied).main.answers
    for changed in ([], [answers[0]], [[[0.0] * 40] * 3] * 2, [[[0.0]] * 9] * 2, [[[0.0], []]] * 2,
                    [[[0.0]]] * 2, [[[]] * 3] * 2):  # fmt: skip
        path = edited(copied, changed)
        outcome = cli("verify", path)
        assert outcome.code == 2
        assert "answers" in outcome.err
        edited(path, answers)


def test_long_answers_are_left_out(tmp_path):
    record = run(model="zero", task="multiply", eval_prompts=8, out=tmp_path)
    assert record.main.answers is None
    (path,) = RecordStore(tmp_path).paths()
    assert failing(path) == set()


def test_what_is_not_finite_is_none():
    answers = np.array([[[np.nan], [np.inf], [1.5]]])
    kept = as_numbers(answers)
    assert kept == (((None,), (None,), (1.5,)),)
    assert np.isnan(as_array(kept)[0, :2]).all()


def test_a_model_is_asked_for_few_prompts():
    task = load_task("least-squares", dim=2, examples=4)
    batch = task.evaluation_batches(16, 0, torch.float32)[0]
    seen = []

    class Zero(torch.nn.Module):
        def forward(self, prompt):
            seen.append(len(prompt.query))
            return torch.zeros_like(prompt.query[..., :1])

    assert first_answers([Zero(), Zero()], batch, torch.device("cpu")).shape == (2, 3, 1)
    assert seen == [3, 3]


def test_a_solvers_answers_are_exact(tmp_path):
    args = {name: TINY[name] for name in ("task", "task_args", "eval_prompts")}
    record = run(model="least-squares-qr", **args, out=tmp_path)
    task = load_task("least-squares", dim=2, examples=4)
    target = task.evaluation_batches(64, 0, torch.float32)[0].target[:3].flatten().numpy()
    assert as_array(record.main.answers)[0, :, 0] == pytest.approx(target, rel=1e-4)


def test_no_answer_of_many_may_differ():
    answers = np.linspace(0.1, 1.0, 500).reshape(1, 500, 1)
    forged = answers.copy()
    forged[0, 7] = 3.0
    assert compare_answers("answers", answers, answers, arithmetic()).holds
    assert not compare_answers("answers", forged, answers, arithmetic()).holds
