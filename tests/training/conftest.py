"""Makes `toys` and `trainings` importable in the folders below."""
