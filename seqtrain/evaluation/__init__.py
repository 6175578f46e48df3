"""Running a model over data: logits, scores, answers at every time step, carried states."""
