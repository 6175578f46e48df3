"""The fused engine: torch's GRU in plain torch operations, at a cost linear in the tokens."""
