"""Right and wrong backward passes in the styles of other people, to measure the checker on."""
