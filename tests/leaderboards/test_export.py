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
    solver = table.set_index(["task", "model", "dtype"]).loc[
        ("least-squares", "least-squares-qr", "float64")
    ]
    assert 0 < solver["floor"] < solver["median"]
    assert solver["digits"] == pytest.approx(-np.log10(solver["median"]))
    assert pd.isna(table.set_index("model").loc["class-frequency", "digits"])
