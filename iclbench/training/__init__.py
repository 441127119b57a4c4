"""The engine: replicas, optimizers, schedules, the loop and its checkpoints."""
