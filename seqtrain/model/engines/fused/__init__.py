"""The fused engine: recurrent cells in plain torch operations, at a cost linear in the tokens."""
