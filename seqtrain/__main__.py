"""`python -m seqtrain` is `seqtrain`."""

from seqtrain.cli.main import run

if __name__ == "__main__":
    run()
