"""Fuzzers: every surface a stranger can reach, under a watchdog. See `fuzz/__main__.py`."""
