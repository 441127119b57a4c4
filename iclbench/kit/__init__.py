"""The kit for authors of plugins: conformance checks of every kind of entry, and the scaffold.

`iclbench check`, `pytest --iclbench` and `iclbench new` are thin layers over it.
It may import `leaderboards`, `sweeps`, `runs` and everything below.
"""
