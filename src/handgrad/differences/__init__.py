"""Derivatives by differences, and layers as functions of arrays that can be differenced."""
