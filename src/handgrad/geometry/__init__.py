"""Arithmetic of axes, windows, steps and positions that an op and its kernel both need."""
