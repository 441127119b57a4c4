"""Export: every row in CSV and Parquet."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from iclbench import RecordStore


def test_the_export_holds_every_row(built):
    table = pd.read_csv(built / "rows.csv")
    store = RecordStore(built / "records")
    assert set(table["record"]) == {str(p.relative_to(store.folder)) for p in store.paths()}
    assert table["record"].is_unique
    parquet = pd.read_parquet(built / "rows.parquet")
    assert parquet["digest"].tolist() == table["digest"].tolist()
    assert parquet["median"].tolist() == pytest.approx(table["median"].tolist())
    rows = table.set_index(["task", "model", "dtype"])
    solver = rows.loc[("least-squares", "least-squares-qr", "float32")]
    assert solver["at_floor"]
    assert (solver["floor_kind"], solver["unranked"]) == ("exact", "reference")
    # Half of −log₁₀ of a squared error.
    assert solver["score"] == pytest.approx(-np.log10(solver["median"]) / 2, abs=0.5)
    assert solver["score_low"] < solver["score"] < solver["score_high"]
    assert rows.loc[("least-squares", "least-squares-qr", "float64"), "at_floor"]
    frequency = table.set_index("model").loc["class-frequency"]
    assert (frequency["statistic"], frequency["chance"]) == ("mean", "chance")
    assert frequency["score"] == frequency["mean"]
    assert pd.isna(frequency["at_floor"])
    trained = table[table["origin"] == "trained"]
    assert (trained["rank_first"] >= 1).all()
    assert (trained["rank_last"] <= 2).all()
    assert not trained["tuned"].any()
    assert trained["tuning_trials"].isna().all()
    assert table["rank_first"].count() == len(trained) == 2
