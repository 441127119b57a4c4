"""What a person sees of runs and records, on a terminal and in Python.

Tables that fit the terminal, plots of curves, the progress display and time estimates belong here,
and so does the public `run()`, which shows them.
It may import `leaderboards` and everything below.
"""
