"""Shared data are those of their task but for the last bits."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

from iclbench import RecordError
from iclbench.exchange.comparison import _require_close

PADDED = [[1.0, float("nan")], [-2.0, 3.0]]


def written(path, rows):
    parquet.write_table(pa.table({"target": rows}), path)
    return path


def test_padding_by_nan_leaves_room_for_the_last_bits(tmp_path):
    ours = written(tmp_path / "ours", PADDED)
    _require_close(ours, written(tmp_path / "theirs", [[1.0 + 1e-15, float("nan")], [-2.0, 3.0]]))


@pytest.mark.parametrize(
    "row", [[1.0, 0.0], [1.001, float("nan")], [float("nan"), float("nan")], [1.0, float("inf")]]
)
def test_other_numbers_and_other_padding_are_refused(tmp_path, row):
    ours = written(tmp_path / "ours", PADDED)
    with pytest.raises(RecordError, match="target differs from its task"):
        _require_close(ours, written(tmp_path / "theirs", [row, PADDED[1]]))


def test_ids_are_compared_exactly(tmp_path):
    """As numbers, two large ids would differ by less than rounding may."""
    ours = written(tmp_path / "ours", [[50_200, -1], [50_256, 7]])
    _require_close(ours, written(tmp_path / "theirs", [[50_200, -1], [50_256, 7]]))
    with pytest.raises(RecordError, match="target differs from its task"):
        _require_close(ours, written(tmp_path / "theirs", [[50_200, -1], [50_255, 7]]))


def test_what_would_unpack_to_more_is_refused_before_it_is_read(tmp_path, monkeypatch):
    ours = written(tmp_path / "ours", PADDED)
    long = written(tmp_path / "long", [[*PADDED[0], *[0.0] * 100_000], PADDED[1]])
    more = tmp_path / "more"
    parquet.write_table(pa.table({"target": PADDED, "other": ["x" * 10**6] * 2}), more)
    text = tmp_path / "text"
    parquet.write_table(pa.table({"target": ["x" * 10**6] * 2}), text)
    monkeypatch.setattr(parquet, "read_table", None)
    for theirs in (long, more, text):
        assert theirs.stat().st_size < 100_000
        with pytest.raises(RecordError, match="does not have the columns and rows"):
            _require_close(ours, theirs)
