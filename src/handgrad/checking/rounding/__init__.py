"""Rules of a running error analysis: what each function adds to a bound of rounding errors."""
