"""What other programs and places take: a task's prompts as a dataset, and the hub's repositories.

`task_data.py` writes prompts, `packing.py` lists what is pushed, `hub.py` alone talks to the hub,
and `pulling.py` lets in only what is sound. Cards and metadata follow from what they describe.
It may import `leaderboards`, `sweeps`, `runs` and everything below.
"""
