"""Speed benchmarks. Tests assert none of their timings."""
