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
    # Half of −log₁₀ of a squared error.
    assert solver["digits"] == pytest.approx(-np.log10(solver["median"]) / 2, abs=0.5)
    assert rows.loc[("least-squares", "least-squares-qr", "float64"), "at_floor"]
    assert pd.isna(table.set_index("model").loc["class-frequency", "digits"])
