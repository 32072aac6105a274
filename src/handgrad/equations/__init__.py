"""Notes printed from the code that runs: equations from programs, numbers from runs.

`handgrad.equations.notes.notes` is `hg.notes`.
"""
