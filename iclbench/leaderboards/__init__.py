"""Leaderboards: tables, pages, figures and the site, made from records alone.

Making them evaluates nothing; `submission.py` decides what gets in.
It may import `sweeps`, `runs` and everything below.
"""
