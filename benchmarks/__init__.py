"""handgrad beside its peers: `python -m benchmarks`. See docs/benchmarks.md."""
