"""From the tree of a function that ran to numbered equations with symbols and shapes."""
