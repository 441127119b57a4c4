"""The task imagenet: contexts, covariates, pools, records and baselines."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from imagenet_support import CPU, SMALL, make_folder, make_task
from wheel_support import wheel_files

from iclbench import run, training_batch
from iclbench.kit.tasks import check_task
from iclbench_imagenet.covariates import Covariates
from iclbench_imagenet.picking import without_replacement
from iclbench_imagenet.store import FILE, read_features
from iclbench_imagenet.task import PACKAGED, ImageNet, folder_of


def test_draws_without_replacement_are_uniform():
    """On a grid of the unit square, every ordered pair of 4 comes equally often."""
    steps = (torch.arange(12, dtype=torch.float64) + 0.5) / 12
    uniform = torch.cartesian_prod(steps, steps)
    pairs = without_replacement(uniform, torch.full((144,), 4)).tolist()
    counts = {pair: pairs.count(list(pair)) for pair in itertools.permutations(range(4), 2)}
    assert set(counts.values()) == {12}


def test_draws_without_replacement_are_distinct():
    generator = torch.Generator().manual_seed(0)
    uniform = torch.rand(500, 7, generator=generator, dtype=torch.float64)
    size = torch.randint(7, 20, (500,), generator=generator)
    uniform[0], size[0] = 1.0 - 2.0**-53, 1300  # times 1300 this rounds to 1300
    draws = without_replacement(uniform, size)
    assert (draws < size[:, None]).all()
    assert (draws >= 0).all()
    assert all(len(set(row)) == 7 for row in draws.tolist())
    everything = without_replacement(uniform[:, :7], torch.full((500,), 7))
    assert all(sorted(row) == list(range(7)) for row in everything.tolist())


@pytest.mark.parametrize("half", ["training", "test"])
def test_contexts_come_from_one_half_with_new_labels(tmp_path, half):
    folder = make_folder(tmp_path, sizes=(9, 7, 8, 9, 10, 7, 8), width=4)
    task = make_task(images=str(folder), ways=3, shots=4, queries=3, test_classes=3)
    if half == "training":
        batch = training_batch(task, 200, torch.Generator().manual_seed(0), torch.float64)
    else:
        (batch,) = task.evaluation_batches(200, 0, torch.float64)
    rows = {tuple(x.tolist()): i for i, x in enumerate(task.covariates.table(CPU, torch.float64))}
    seen = set()
    for x, y, query, target in zip(*batch.prompt, batch.target, strict=True):
        images = [rows[tuple(v.tolist())] for v in (*x, *query)]
        assert len(set(images)) == len(images)
        classes = task.data.labels[torch.tensor(images)].tolist()
        labels = [*y.tolist(), *target.tolist()]
        assert len(set(zip(labels, classes, strict=True))) == len(set(classes)) == 3
        assert [y.tolist().count(label) for label in range(3)] == [4, 4, 4]
        assert set(classes) <= set(getattr(task.split, half))
        seen.update(zip(labels, classes, strict=True))
    # Every class gets every label.
    assert len(seen) == 3 * len(getattr(task.split, half))
    # Neither the order of the examples nor the query's label is predictable.
    assert torch.bincount(batch.prompt.y[:, 0], minlength=3).min() > 40
    assert torch.bincount(batch.target.flatten(), minlength=3).min() > 150


def test_covariates_are_centered_and_scaled_by_the_training_half(tmp_path):
    task = make_task(images=str(make_folder(tmp_path, sizes=(30, 40, 30, 20), width=5)), **SMALL)
    x = task.covariates.table(CPU, torch.float64)
    training = torch.isin(task.data.labels, torch.tensor(task.split.training))
    torch.testing.assert_close(x[training].mean(dim=0), torch.zeros(5).double(), atol=1e-9, rtol=0)
    assert float(x[training].square().sum(dim=1).mean()) == pytest.approx(5)
    raw = task.data.features.double()
    factor = (raw[0] - raw[1]).norm() / (x[0] - x[1]).norm()
    torch.testing.assert_close(torch.cdist(raw, raw), factor * torch.cdist(x, x))
    plain = make_task(images=str(tmp_path), normalize=False, **SMALL)
    assert torch.equal(plain.covariates.table(CPU, torch.float64), raw)


def test_principal_components_are_those_of_the_training_half():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 8, generator=generator, dtype=torch.float64)
    training = torch.arange(60) < 40
    x = Covariates(features, training, dim=3, normalize=True).table(CPU, torch.float64)
    centered = features - features[:40].mean(dim=0)
    _, _, right = torch.linalg.svd(centered[:40])
    components = centered @ right[:3].mT
    expected = components * math.sqrt(3 / float(components[:40].square().sum(dim=1).mean()))
    torch.testing.assert_close(x.abs(), expected.abs())
    assert float(x[:40].square().sum(dim=1).mean()) == pytest.approx(3)
    # The test half has no influence.
    shifted = features.clone()
    shifted[40:] += 5.0
    again = Covariates(shifted, training, dim=3, normalize=True).table(CPU, torch.float64)
    torch.testing.assert_close(again[:40], x[:40])


@pytest.mark.parametrize(
    "config", [{}, {"pool": 7}, {"queries": 3, "shots": 4, "ways": 3}, {"dim": 6}], ids=str
)
def test_the_task_conforms(config):
    check_task(make_task(**config), n=6)


def test_the_published_recipe_passes_over_the_pool_500_times():
    recipe = ImageNet.recipes["paper"]
    # Every chunk starts a pass: a whole one, which ends with the chunk.
    assert recipe.chunk * recipe.batch == recipe.task_args["pool"] == 2048
    assert recipe.steps / recipe.chunk == 500


def test_a_pool_is_the_same_for_every_run_and_every_epoch():
    task, again = (make_task(pool=8, task_seed=3) for _ in range(2))
    first = training_batch(task, 16, torch.Generator().manual_seed(0), torch.float32)
    other = training_batch(again, 8, torch.Generator().manual_seed(1), torch.float32)

    def contexts(batch, start, stop):
        return {tuple(x[0].tolist()) for x in batch.prompt.x[start:stop]}

    assert contexts(first, 0, 8) == contexts(first, 8, 16) == contexts(other, 0, 8)
    assert len(contexts(first, 0, 8)) >= 7  # two contexts may begin with one image
    assert make_task(pool=8).evaluation_digest(4, 0) == make_task().evaluation_digest(4, 0)


def test_a_record_states_the_source_of_the_features(tmp_path, cli):
    folder = make_folder(tmp_path / "features")
    args = {"images": str(folder), **SMALL}
    record = run(model="nearest-class-mean", task="imagenet", task_args=args, eval_prompts=16,
                 out=tmp_path / "out")  # fmt: skip
    provenance = record.main.provenance
    assert provenance["features"]["sha256"] == read_features(folder).sha256
    split = provenance["split"]
    assert sorted([*split["training"], *split["test"]]) == ["a", "b", "c", "d"]
    assert record.spec.task_args["digest"] == make_task(**args).config.digest
    assert record.floor == {}
    assert "images" not in record.main.task_args
    assert cli("verify", tmp_path / "out", "--trust").code == 0
    # The same features in another folder are comparable; changed features are detected.
    board = cli("leaderboard", "show", "--out", tmp_path / "out").out
    assert "| floor" not in board
    make_folder(folder, seed=1)
    result = cli("verify", tmp_path / "out", "--trust")
    assert result.code == 1
    assert "spec task_args" in result.out
    changed = run(model="nearest-class-mean", task="imagenet", task_args=args, eval_prompts=16,
                  out=tmp_path / "out")  # fmt: skip
    assert changed.id != record.id


def test_weights_for_another_width_of_features_are_refused(tmp_path, cli):
    make_folder(tmp_path / "three", width=3)
    make_folder(tmp_path / "four", width=4)
    command = ["run", "--model", "transformer", "--task", "imagenet", "--recipe", "smoke",
               "--recipe-args", "steps=1", "--seeds", "1", "--eval-prompts", "8",
               "--out", tmp_path / "out"]  # fmt: skip
    assert cli(*command, "--task-args", f"images={tmp_path / 'three'},ways=2,shots=3").code == 0
    (weights,) = (tmp_path / "out").rglob("objects/*/*.safetensors")
    result = cli(*command[:5], "--weights", weights, "--out", tmp_path / "out", "--task-args",
                 f"images={tmp_path / 'four'},ways=2,shots=3")  # fmt: skip
    assert result.code == 2
    assert "does not fit the model: embed.real.weight is" in result.err


@pytest.mark.parametrize(
    ("images", "classes", "shape"),
    [("emoji", 33, (860, 512)), ("fashion-mnist", 10, (5000, 256))],
)
def test_packaged_features_are_complete_and_small(images, classes, shape):
    stored = read_features(folder_of(images))
    assert len(stored.about.classes) == len(stored.about.groups) == classes
    assert stored.features.shape == shape
    assert stored.features.dtype == torch.float16
    assert (folder_of(images) / FILE).stat().st_size < 3_000_000
    assert f"iclbench_imagenet/{images}/{FILE}" in wheel_files()


@pytest.mark.parametrize("images", PACKAGED)
def test_packaged_images_say_what_they_are(images):
    task = make_task(images=images)
    assert task.title == f"imagenet: {PACKAGED[images]}"
    assert "stand-in" in task.title
    features = task.provenance["features"]
    assert features["data"] == images
    assert features["licence"]
    assert len(features["images_sha256"]) == 64


def test_a_folder_s_title_is_its_data(tmp_path):
    assert make_task(images=str(make_folder(tmp_path)), **SMALL).title == "imagenet: made"


def accuracy(model, prompts, out, **args):
    """Accuracy with 28 of the 33 classes for testing, the most that leave a training half."""
    record = run(model=model, task="imagenet", task_args={"test_classes": 28, **args},
                 eval_prompts=prompts, out=out)  # fmt: skip
    return record.metrics["accuracy"].mean


def test_emoji_are_neither_trivial_nor_saturated(tmp_path):
    """About 75% with 28 of the 33 classes; chance is 20%."""
    assert 0.69 < accuracy("nearest-class-mean", 2048, tmp_path) < 0.78


@pytest.mark.slow
def test_logistic_regression_on_emoji(tmp_path):
    """A little above the nearest class mean."""
    assert 0.71 < accuracy("logistic-regression", 1024, tmp_path) < 0.80


@pytest.mark.parametrize("task", ["imagenet", "categorical"])
def test_sequence_models_share_one_board(tmp_path, cli, task):
    models = "transformer,baseconv,lsa-tokens,elsa-tokens,gd-transformer,linear-probe"
    small = "images=" + str(make_folder(tmp_path / "f")) + ",ways=2,shots=3"
    args = small if task == "imagenet" else "classes=6,dim=3,examples=4"
    result = cli("run", "--model", models, "--task", task, "--task-args", args, "--recipe", "smoke",
                 "--recipe-args", "steps=2,batch=4", "--seeds", "1", "--eval-prompts", "16",
                 "--out", tmp_path / "out")  # fmt: skip
    assert result.code == 0, result.err
    for model in models.split(","):
        assert f" {model} " in result.out
    for model in ("lsa", "elsa"):
        refused = cli("run", "--model", model, "--task", task, "--out", tmp_path / "out")
        assert refused.code == 2
        assert f"{model}-tokens embeds classes" in refused.err


def test_the_evaluation_set_never_changes():
    """Golden values of the committed features; sums agree up to rounding on any machine."""
    (batch,) = make_task().evaluation_batches(4, 0, torch.float64)
    sums = [float(batch.prompt.x.sum()), float(batch.prompt.query.square().sum())]
    np.testing.assert_allclose(sums, [551.5399989818042, 2138.4614462122327], rtol=1e-9)
    assert batch.target.flatten().tolist() == [2, 0, 1, 1]
    assert make_task().config.digest == "c9da85179fffa2e6"
