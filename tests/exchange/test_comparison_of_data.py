"""Shared data are those of their task but for the last bits."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from support import run_python

from iclbench import RecordError
from iclbench.exchange import comparison
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


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_numbers_may_differ_by_a_part_of_the_largest_whatever_its_size(tmp_path, size):
    def scaled(*rows):
        return [[size * value for value in row] for row in rows]

    ours = written(tmp_path / "ours", scaled([1.0, 0.0], [-2.0, 3.0]))
    _require_close(ours, written(tmp_path / "near", scaled([1.0, 1e-6], [-2.0, 3.0])))
    with pytest.raises(RecordError, match="target differs from its task"):
        _require_close(ours, written(tmp_path / "far", scaled([1.0, 0.01], [-2.0, 3.0])))


@pytest.mark.parametrize("row", [[1.0], [1.0, None], [1.0, 2.0, 3.0], None])
def test_gaps_are_refused(tmp_path, row):
    ours = written(tmp_path / "ours", PADDED)
    rows = [row, PADDED[1]] if row is not None else [None, [1.0, 2.0, -2.0, 3.0]]
    theirs = written(tmp_path / "theirs", rows)
    with pytest.raises(RecordError, match=r"lacks some of its numbers|columns and values"):
        _require_close(ours, theirs)


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
        with pytest.raises(RecordError, match="does not have the columns and values"):
            _require_close(ours, theirs)


def forged(path, values, claimed):
    """A file whose footer claims as many bytes as another: its numbers are overwritten in place."""
    parquet.write_table(pa.table({"target": values}), path, write_statistics=False)
    group = parquet.read_metadata(path).row_group(0)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8]
    for number in {group.total_byte_size, group.column(0).total_uncompressed_size}:
        footer = footer.replace(varint(number), varint(claimed, len(varint(number))))
    path.write_bytes(data[:start] + footer + data[-8:])
    return path


def varint(number, length=1):
    """A number as Thrift's compact protocol writes it, in so many bytes at least."""
    number, coded = 2 * number, []
    while number or len(coded) < length:
        number, low = divmod(number, 128)
        coded.append(low | 128)
    return bytes([*coded[:-1], coded[-1] & 127])


def test_a_file_that_lies_about_what_it_unpacks_to_is_refused(tmp_path):
    ours = written(tmp_path / "ours", [f"text {i}" for i in range(40)])
    theirs = forged(tmp_path / "theirs", ["x" * 2_000_000] * 40, claimed=120)
    assert theirs.stat().st_size < 300_000
    assert comparison._have_one_form(ours, theirs)
    with pytest.raises(RecordError, match="unpacks to far more than the data of its task"):
        _require_close(ours, theirs)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no bound")
def test_reading_takes_no_more_memory_than_it_may(tmp_path):
    """Half a gigabyte of zeros in a few kilobytes; in another process, whose memory is its own."""
    path = tmp_path / "zeros"
    zeros = pa.ListArray.from_arrays([0, 2**26, 2**27], pa.array(np.zeros(2**27, np.float32)))
    parquet.write_table(pa.table({"target": zeros}), path, write_statistics=False)
    assert path.stat().st_size < 10_000
    program = (
        "from pathlib import Path; from pyarrow import parquet\n"
        "from iclbench.exchange.comparison import _read_alone\n"
        "from iclbench.exchange.memory import bounded_memory\n"
        f"with bounded_memory(2**26): _read_alone(Path({str(path)!r}))"
    )
    done = run_python("-c", program, path=tmp_path)
    assert "MemoryError" in done.stderr, done.stderr
