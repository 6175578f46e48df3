"""Room of sequences: what columns mean, preprocessing, stores and batches."""
