"""A study's own table as text."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from safetensors.torch import save_file
from support import TINY

from iclbench import RecordStore, run
from iclbench.display.study import _parameter_counts, _study_cell, study_table
from iclbench.sweeps.table import StudyTable

MEANS, MEDIANS = StudyTable(metrics=("*",)), StudyTable(metrics=("*",), statistic="median")


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (12.345, 12.1, 12.6, "12.35 ± 0.25"),
        (0.5, 0.5, 0.5, "0.5 ± 0"),
        (3e-7, 3e-7, 3e-7, "3e-07 ± 0"),
        (1.234e-7, 1.184e-7, 1.284e-7, "1.23e-07 ± 5.0e-09"),
        (3.21e-30, 3.1e-30, 3.3e-30, "3.21e-30 ± 1.0e-31"),
    ],
)
def test_means_have_half_the_width_of_their_interval(mean, low, high, text):
    statistics = SimpleNamespace(mean=mean, low=low, high=high, reliable=True, median=mean)
    assert _study_cell(MEANS, statistics) == text


def test_unreliable_means_have_both_bounds_and_medians_none():
    statistics = SimpleNamespace(mean=2.0, low=1.0, high=9.0, reliable=False, median=1e-12)
    assert _study_cell(MEANS, statistics) == "2 [1, 9]"
    assert _study_cell(MEDIANS, statistics) == "1e-12"
    # Log-normal: half a width below the mean would be negative.
    skewed = SimpleNamespace(mean=2.46, low=0.635, high=9.56, reliable=True, median=1.0)
    assert _study_cell(MEANS, skewed) == "2.46 [0.635, 9.56]"
    assert _study_cell(MEDIANS, None) == ""


def test_parameters_of_loaded_weights_are_counted_like_those_of_seeds(tmp_path):
    counts = StudyTable(metrics=("*",), counts={"all": ("*",), "bias": ("*.bias",)})
    trained = run("transformer", **{**TINY, "seeds": 2}, out=tmp_path)
    plain = tmp_path / "plain.safetensors"
    save_file(trained.weights()[0], plain)
    args = {**TINY, "model_args": trained.spec.model_args}
    loaded = run("transformer", **args, weights=str(plain), out=tmp_path)
    store = RecordStore(tmp_path)
    first, second = (_parameter_counts(counts, record, store) for record in (trained, loaded))
    assert first == second
    assert first["all"].value == trained.parameters > first["bias"].value > 0


def test_each_board_has_its_own_floor(tmp_path):
    args = {**TINY, "model": "least-squares-qr"}
    records = [run(**args, dtype=dtype, out=tmp_path) for dtype in ("float32", "float64")]
    described = StudyTable(metrics=("squared_error",))
    table = study_table(described, records, RecordStore(tmp_path))
    assert [(row["board"], row["model"]) for row in table.rows] == [
        (board, model)
        for board in ("least-squares", "least-squares float64")
        for model in ("attainable", "least-squares-qr")
    ]
    for record, floor in zip(records, table.rows[::2], strict=True):
        assert floor["squared_error"].value == record.floor["squared_error"].mean
    alone = study_table(described, records[:1], RecordStore(tmp_path))
    assert "board" not in {column.name for column in alone.columns}
