"""Executors that come with the harness; others are plugins.

An executor runs the programs of a sweep; see `iclbench.Executor`.
It may import `training` and everything below.
"""
