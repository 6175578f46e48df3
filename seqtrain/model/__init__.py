"""The network: input, recurrent encoder, pooling, head. Third room, `model`."""
