"""What `seqtrain convert` does: it writes a data file in a form that `seqtrain init` reads."""
