"""Functions that the playground offers: each file with INPUTS, the numbers that it begins with."""
