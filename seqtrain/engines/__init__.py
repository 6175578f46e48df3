"""The engines: each computes a stack of recurrent layers over packed sequences in its own way."""
