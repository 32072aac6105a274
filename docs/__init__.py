"""The pages of documentation, and what writes those that are generated."""
