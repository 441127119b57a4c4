"""Makes `toys` and `trainings` importable in the subfolders."""
