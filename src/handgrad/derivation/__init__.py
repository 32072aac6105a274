"""Notes printed from the code that runs: equations from trees, numbers from runs.

`handgrad.derivation.notes.notes` is `hg.notes`.
"""
