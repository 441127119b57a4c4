"""Gradients of all replicas: the protocol, the programs that follow it, and the choice of one.

Start with `program.py` and `plain.py`. It imports `training.replicas`, `nn` and `api`.
"""
