"""Leaderboards: tables, pages, figures and the site, made from records alone.

Making them evaluates nothing; `ranking.py` decides ranks, `row.py` makes
rows, and `submission.py` decides what gets in.
It may import `sweeps`, `runs` and everything below.
"""
