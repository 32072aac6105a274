"""The backwards of the ops derived from their forwards, beside those by hand.

`python -m docs.derived` writes docs/derived.md.
"""
