"""Copying several files at once: the first that fails ends the rest."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from iclbench.api.errors import RecordError
from iclbench.exchange.hub import HubFile
from iclbench.exchange.pulling import _fetch_all

MOST = 5000


@pytest.mark.parametrize("names", [("bad", "long"), ("long", "bad")])
def test_a_failure_ends_downloads_that_run(tmp_path, names):
    started, read = threading.Event(), []

    def chunks(path):
        if path == "bad":
            started.wait(10)
            raise RecordError("no such file")
        for number in range(MOST):
            read.append(number)
            started.set()
            time.sleep(0.002)
            yield b"x"

    source = SimpleNamespace(name="a folder", chunks=chunks)
    files = [(HubFile(name, MOST), MOST) for name in names]
    with pytest.raises(RecordError, match="no such file"):
        _fetch_all(source, files, tmp_path)
    assert 0 < len(read) < MOST
