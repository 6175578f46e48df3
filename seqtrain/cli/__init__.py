"""The command line: a thin verb a file over `workflows`; free of torch until a verb runs."""
