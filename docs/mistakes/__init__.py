"""The mistakes in the documents that handgrad was built from, each proved by a run.

`python -m docs.mistakes` writes docs/mistakes.md.
"""
