"""Drawing figures from records, and writing them as pages and images."""
