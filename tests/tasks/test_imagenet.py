"""The task imagenet: contexts, covariates, pools and records."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from imagenet_support import CPU, SMALL, folder_of, made

from iclbench import run, training_batch
from iclbench.runs.checks import check_task
from iclbench_imagenet.covariates import Covariates
from iclbench_imagenet.picking import without_replacement
from iclbench_imagenet.store import FILE, read_features
from iclbench_imagenet.task import COMMITTED


def test_draws_without_replacement_are_uniform():
    """Every ordered pair of 4 equally often; in cells of the unit square exactly so."""
    steps = (torch.arange(12, dtype=torch.float64) + 0.5) / 12
    uniform = torch.cartesian_prod(steps, steps)
    pairs = without_replacement(uniform, torch.full((144,), 4)).tolist()
    counts = {pair: pairs.count(list(pair)) for pair in itertools.permutations(range(4), 2)}
    assert set(counts.values()) == {12}


def test_draws_without_replacement_take_each_number_once():
    generator = torch.Generator().manual_seed(0)
    uniform = torch.rand(500, 7, generator=generator, dtype=torch.float64)
    size = torch.randint(7, 20, (500,), generator=generator)
    uniform[0], size[0] = 1.0 - 2.0**-53, 1300  # times 1300 this rounds to 1300
    found = without_replacement(uniform, size)
    assert (found < size[:, None]).all()
    assert (found >= 0).all()
    assert all(len(set(row)) == 7 for row in found.tolist())
    everything = without_replacement(uniform[:, :7], torch.full((500,), 7))
    assert all(sorted(row) == list(range(7)) for row in everything.tolist())


@pytest.mark.parametrize("half", ["training", "test"])
def test_contexts_are_of_one_half_and_labelled_anew(tmp_path, half):
    folder = folder_of(tmp_path, sizes=(9, 7, 8, 9, 10, 7, 8), width=4)
    task = made(features=str(folder), ways=3, shots=4, queries=3, test_classes=3)
    if half == "training":
        batch = training_batch(task, 200, torch.Generator().manual_seed(0), torch.float64)
    else:
        (batch,) = task.evaluation_batches(200, 0, torch.float64)
    rows = {tuple(x.tolist()): i for i, x in enumerate(task.covariates.table(CPU, torch.float64))}
    seen = set()
    for x, y, query, asked in zip(*batch.prompt, batch.target, strict=True):
        images = [rows[tuple(v.tolist())] for v in (*x, *query)]
        assert len(set(images)) == len(images)
        classes = task.data.labels[torch.tensor(images)].tolist()
        labels = [*y.tolist(), *asked.tolist()]
        assert len(set(zip(labels, classes, strict=True))) == len(set(classes)) == 3
        assert [y.tolist().count(label) for label in range(3)] == [4, 4, 4]
        assert set(classes) <= set(getattr(task.split, half))
        seen.update(zip(labels, classes, strict=True))
    # Every class has been given every label.
    assert len(seen) == 3 * len(getattr(task.split, half))
    # Neither the order of the examples nor the query's label gives anything away.
    assert torch.bincount(batch.prompt.y[:, 0], minlength=3).min() > 40
    assert torch.bincount(batch.target.flatten(), minlength=3).min() > 150


def test_covariates_are_centred_and_scaled_by_the_training_half(tmp_path):
    task = made(features=str(folder_of(tmp_path, sizes=(30, 40, 30, 20), width=5)), **SMALL)
    x = task.covariates.table(CPU, torch.float64)
    training = torch.isin(task.data.labels, torch.tensor(task.split.training))
    torch.testing.assert_close(x[training].mean(dim=0), torch.zeros(5).double(), atol=1e-9, rtol=0)
    assert float(x[training].square().sum(dim=1).mean()) == pytest.approx(5)
    raw = task.data.features.double()
    factor = (raw[0] - raw[1]).norm() / (x[0] - x[1]).norm()
    torch.testing.assert_close(torch.cdist(raw, raw), factor * torch.cdist(x, x))
    plain = made(features=str(tmp_path), normalize=False, **SMALL)
    assert torch.equal(plain.covariates.table(CPU, torch.float64), raw)


def test_principal_components_are_those_of_the_training_half():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 8, generator=generator, dtype=torch.float64)
    training = torch.arange(60) < 40
    x = Covariates(features, training, dim=3, normalize=True).table(CPU, torch.float64)
    apart = features - features[:40].mean(dim=0)
    _, _, right = torch.linalg.svd(apart[:40])
    components = apart @ right[:3].mT
    expected = components * math.sqrt(3 / float(components[:40].square().sum(dim=1).mean()))
    torch.testing.assert_close(x.abs(), expected.abs())
    assert float(x[:40].square().sum(dim=1).mean()) == pytest.approx(3)
    other = features.clone()
    other[40:] += 5.0
    again = Covariates(other, training, dim=3, normalize=True).table(CPU, torch.float64)
    torch.testing.assert_close(again[:40], x[:40])


@pytest.mark.parametrize(
    "config", [{}, {"pool": 7}, {"queries": 3, "shots": 4, "ways": 3}, {"dim": 6}], ids=str
)
def test_it_conforms(config):
    check_task(made(**config), n=6)


def test_a_pool_is_the_same_for_every_run_and_is_passed_over_whole():
    task, again = (made(pool=8, task_seed=3) for _ in range(2))
    first = training_batch(task, 16, torch.Generator().manual_seed(0), torch.float32)
    other = training_batch(again, 8, torch.Generator().manual_seed(1), torch.float32)

    def contexts(batch, start, stop):
        return {tuple(x[0].tolist()) for x in batch.prompt.x[start:stop]}

    assert contexts(first, 0, 8) == contexts(first, 8, 16) == contexts(other, 0, 8)
    assert len(contexts(first, 0, 8)) >= 7  # two contexts may begin with one image
    assert made(pool=8).evaluation_digest(4, 0) == made().evaluation_digest(4, 0)


def test_a_record_says_where_the_features_are_from(tmp_path, cli):
    folder = folder_of(tmp_path / "features")
    args = {"features": str(folder), **SMALL}
    record = run(model="nearest-class-mean", task="imagenet", task_args=args, eval_prompts=16,
                 out=tmp_path / "out")  # fmt: skip
    provenance = record.evaluation.provenance
    assert provenance["features"]["sha256"] == read_features(folder).sha256
    split = provenance["split"]
    assert sorted([*split["training"], *split["test"]]) == ["a", "b", "c", "d"]
    assert record.spec.task_args["digest"] == made(**args).config.digest
    assert record.floor == {}
    assert "features" not in record.evaluation.task_args
    assert cli("verify", tmp_path / "out").code == 0
    # The same features elsewhere are comparable, others are told apart.
    board = cli("leaderboard", "show", "--out", tmp_path / "out").out
    assert "| floor" not in board
    folder_of(folder, seed=1)
    found = cli("verify", tmp_path / "out")
    assert found.code == 2
    assert "or their split, have the digest" in found.err
    changed = run(model="nearest-class-mean", task="imagenet", task_args=args, eval_prompts=16,
                  out=tmp_path / "out")  # fmt: skip
    assert changed.id != record.id


def test_weights_of_features_of_another_width_are_refused(tmp_path, cli):
    folder_of(tmp_path / "three", width=3)
    folder_of(tmp_path / "four", width=4)
    ask = ["run", "--model", "transformer", "--task", "imagenet", "--recipe", "smoke",
           "--recipe-args", "steps=1", "--seeds", "1", "--eval-prompts", "8",
           "--out", tmp_path / "out"]  # fmt: skip
    assert cli(*ask, "--task-args", f"features={tmp_path / 'three'},ways=2,shots=3").code == 0
    (weights,) = (tmp_path / "out").rglob("*.weights.safetensors")
    found = cli(*ask[:5], "--weights", weights, "--out", tmp_path / "out", "--task-args",
                f"features={tmp_path / 'four'},ways=2,shots=3")  # fmt: skip
    assert found.code == 2
    assert "does not fit the model: embed.real.weight is" in found.err


def test_the_committed_features_are_whole():
    found = read_features(COMMITTED)
    assert len(found.about.classes) == 33
    assert found.features.shape == (860, 512)
    assert found.features.dtype == torch.float16
    assert (COMMITTED / FILE).stat().st_size < 1_000_000


def accuracy(model, prompts, out, **args):
    """On contexts of 28 of the 33 classes, the most that leave a training half."""
    record = run(model=model, task="imagenet", task_args={"test_classes": 28, **args},
                 eval_prompts=prompts, out=out)  # fmt: skip
    return record.metrics["accuracy"].mean


def test_emoji_are_neither_trivial_nor_saturated(tmp_path):
    """About 73% on all 33 classes, of 20% by chance."""
    assert 0.69 < accuracy("nearest-class-mean", 2048, tmp_path) < 0.78


@pytest.mark.slow
def test_logistic_regression_on_emoji(tmp_path):
    """A little more than the nearest class mean."""
    assert 0.71 < accuracy("logistic-regression", 1024, tmp_path) < 0.80


@pytest.mark.parametrize("task", ["imagenet", "categorical"])
def test_generic_sequence_models_stand_on_one_board(tmp_path, cli, task):
    models = "transformer,baseconv,lsa-tokens,elsa-tokens,gd-transformer,linear-probe"
    small = "features=" + str(folder_of(tmp_path / "f")) + ",ways=2,shots=3"
    args = small if task == "imagenet" else "classes=6,dim=3,examples=4"
    found = cli("run", "--model", models, "--task", task, "--task-args", args, "--recipe", "smoke",
                "--recipe-args", "steps=2,batch=4", "--seeds", "1", "--eval-prompts", "16",
                "--out", tmp_path / "out")  # fmt: skip
    assert found.code == 0, found.err
    for model in models.split(","):
        assert f"| {model} " in found.out
    for model in ("lsa", "elsa"):
        refused = cli("run", "--model", model, "--task", task, "--out", tmp_path / "out")
        assert refused.code == 2
        assert f"{model}-tokens embeds classes" in refused.err


def test_the_evaluation_set_never_changes():
    """The images that are shown, by the committed features: to rounding on every machine."""
    (batch,) = made().evaluation_batches(4, 0, torch.float64)
    found = [float(batch.prompt.x.sum()), float(batch.prompt.query.square().sum())]
    np.testing.assert_allclose(found, [1186.4876517472328, 2224.086095041729], rtol=1e-9)
    assert batch.target.flatten().tolist() == [2, 0, 1, 1]
    assert made().config.digest == "bdb15c44bc0561d0"
