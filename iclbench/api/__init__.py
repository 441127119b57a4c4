"""What a plugin meets: prompts, tasks, architectures, metrics, graders, recipes, records.

Everything here is small and declarative: base classes, protocols, schemas and random streams.
`task.py` draws the prompts of training and evaluation, from the sources in `draws.py`.
It may import nothing else of iclbench. Plugins get these names from `iclbench` itself.
"""
