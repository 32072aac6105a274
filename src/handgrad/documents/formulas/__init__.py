"""Formulas as data, and what they look like in LaTeX, Typst and MathML."""
