"""Notebooks, each kept as a Python file of cells, from which `python -m docs.notebooks` writes it.

A cell begins with `# %%`, one of text with `# %% [markdown]`; its lines are comments. Editors that
know cells run these files as they are.
"""
