"""The fused engine: torch's recurrent cells in plain torch operations, at a cost linear in the tokens."""
