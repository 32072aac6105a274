"""Trained models in use: what describes them, what goes in, what they answer, and their files."""
