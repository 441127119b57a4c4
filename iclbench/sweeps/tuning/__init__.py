"""Tuning: the search space of a run, the points of a search, and running their trials.

It belongs to `sweeps`, since the trials are runs that share programs.
It may import `runs` and everything below.
"""
