"""Several processes that train together: how they are started, and what they say to one another."""
