"""Training on many ranks: what it costs here, and what the cost model says of larger clusters."""
