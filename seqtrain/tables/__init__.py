"""Tables: readers of file formats, each of which knows nothing of labels, sequences or ids."""
