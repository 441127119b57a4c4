"""What a plugin meets: prompts, tasks, architectures, metrics, graders, recipes, records.

Everything here is small and declarative: base classes, protocols, schemas and random streams.
It may import nothing else of iclbench. Plugins get these names from `iclbench` itself.
"""
