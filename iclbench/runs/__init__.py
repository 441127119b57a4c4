"""One run: spec → plan → models → evaluation → statistics → record → verification.

`run.py` goes from a plan to its record on one page, `verify.py` checks a record, and `checks.py`
checks that plugins conform. It may import `training`, `nn` and `api`.
"""
