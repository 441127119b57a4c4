"""Campaigns: suites and sweeps in a given order, one process per cell, until the hours end.

`files.py` reads them, `cells.py` says what is left, as `work.py` has it, and `run.py` runs it. It
may import what `sweeps` may.
"""
