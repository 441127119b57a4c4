"""Training: the loop, its data, gradients, optimizers, schedules and checkpoints.

All replicas of a run are trained as one program; `loop.py` is the place to start reading.
It may import `nn` and `api`, and never `runs`.
"""
