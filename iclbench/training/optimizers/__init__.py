"""Optimizers on the stacked parameters of all replicas, each replica with its own learning rate.

`choice.py` makes one by its name. It imports `training.replicas`, `training.objective` and `api`.
"""
