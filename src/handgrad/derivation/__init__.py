"""Notes printed from the code that runs: equations from programs, numbers from runs.

`handgrad.derivation.notes.notes` is `hg.notes`.
"""
