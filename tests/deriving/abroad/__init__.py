"""Forwards as papers and kernels publish them, and a judge that shares no code with `hg.derive`.

The programs in `forwards/` are kept as people write them. `first.py` and `second.py` were written
before the trace, the primitives and the emitter were finished, and nothing in these knows of them;
`third.py` was written after, and ran once before its score was noted.
"""
