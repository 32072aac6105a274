"""The equations of a forward and a backward, from the programs that they run."""
