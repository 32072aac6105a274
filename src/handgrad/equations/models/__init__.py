"""The notes of a whole model: its layers, the flow of data, and the chain rule along it."""
