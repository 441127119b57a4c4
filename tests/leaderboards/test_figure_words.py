"""Names of a figure's lines: weights by the training that wrote them, parts of models by titles."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from iclbench import run
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.figures.draw import draw
from iclbench.leaderboards.figures.wording import _sources, _value
from iclbench.sweeps.figure import Figure


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


def test_floors_of_two_dtypes_have_names_and_shades_of_their_own(tmp_path):
    asked = {
        "task": "least-squares-prefixes",
        "task_args": {"dim": 2, "examples": 4},
        "eval_prompts": 8,
    }
    records = [run(model="gradient-descent", dtype=dtype, **asked, out=tmp_path)
               for dtype in ("float32", "float64")]  # fmt: skip
    along = Figure(x="curve", y="prefix_error", lines=("model", "dtype"))
    floors = [trace for trace in draw(along, records).data if "floor" in trace.name]
    assert [trace.name for trace in floors] == [
        "attainable (floor), float32", "attainable (floor), float64",
    ]  # fmt: skip
    assert len({trace.line.color for trace in floors}) == 2
    (alone,) = (trace for trace in draw(along, records[:1]).data if "floor" in trace.name)
    assert alone.name == "attainable (floor)"


def test_a_target_is_not_called_a_floor(tmp_path):
    made = run(model="exact-gradient", task="gradient", eval_prompts=8, out=tmp_path)
    names = [trace.name for trace in draw(Figure(x="eval_prompts"), [made]).data]
    assert names == ["Exact gradient", "target"]
