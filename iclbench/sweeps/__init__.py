"""Sweeps: files that describe grids of runs, and running the cells without a record.

Descriptions of figures and tables belong here too, since sweep files hold them.
It may import `runs` and everything below.
"""
