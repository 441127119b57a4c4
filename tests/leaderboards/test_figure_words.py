"""Names of a figure's lines: weights by the training that wrote them, parts of models by titles."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from iclbench import run
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.figures.wording import _sources, _value


@pytest.fixture(scope="module")
def about():
    return Descriptions(pytest.fail)


def record(recipe, digest, read=None, dtype="float32"):
    """What the names of weights follow from."""
    spec = SimpleNamespace(recipe=recipe, dtype=dtype, checkpoint_digest=read)
    return SimpleNamespace(spec=spec, weights_file=SimpleNamespace(sha256=digest))


def test_weights_are_called_by_their_training():
    trained = [record("lbfgs", "a", dtype="float64"), record("linear-attention", "b")]
    reading = [record("", "c", read="a"), record("", "d", read="b")]
    assert _sources([*trained, *reading]) == {
        "a": "the lbfgs training in float64",
        "b": "the linear-attention training in float32",
    }
    # Two that would be called the same keep their digests, one that nothing reads does not matter.
    same = [record("lbfgs", "a"), record("lbfgs", "b")]
    assert _sources([*same, *reading]) == {}
    assert set(_sources([*same, reading[0]])) == {"a"} | {"b"}


def test_parts_that_are_models_have_their_titles(tmp_path, about):
    made = run(
        model="hybrid",
        task="least-squares",
        model_args={"mixers": ["baseconv", "gated-linear-attention"], "width": 16},
        recipe="smoke",
        eval_prompts=8,
        out=tmp_path,
    )
    assert _value("model_args.mixers", made, about, {}) == "BaseConv + GLA"


def test_a_curve_s_axis_has_words_of_its_task(about):
    assert about.task("least-squares-prefixes").axis("prefix") == "examples in the prompt"
    assert about.task("gradient").axis("iterate") == "iterate"
