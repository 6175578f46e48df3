"""Running a model over data: logits, scores, predictions at every time step, carried states."""
