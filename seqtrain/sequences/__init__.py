"""Room of the data: readers, preprocessing, stores and batches."""
