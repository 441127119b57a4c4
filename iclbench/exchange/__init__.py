"""Exchange with other programs: tasks' prompts as datasets, and repositories on the hub.

`task_data.py` writes prompts, `packing.py` lists what is pushed, `hub.py` alone talks to the hub,
`listing.py` says which files a pull may take, and `pulling.py` lets in only what is sound. Cards
and metadata follow from what they describe. It may import `leaderboards`, `sweeps`, `runs` and
everything below.
"""
