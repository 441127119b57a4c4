"""One run: from spec to plan, models, evaluation, statistics, record and its verification.

`run.py` shows the whole way on one page; `checks.py` is the conformance kit for plugins.
It may import `training`, `nn` and `api`.
"""
