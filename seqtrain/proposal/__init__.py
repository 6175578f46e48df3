"""`seqtrain init`: from data files to a config that suits them."""

from seqtrain.proposal.layouts import refuse_files_without_format
from seqtrain.proposal.options import FileLayout, InitOptions
from seqtrain.proposal.proposal import Proposal, propose
from seqtrain.proposal.reading import data_format

__all__ = [
    "FileLayout",
    "InitOptions",
    "Proposal",
    "data_format",
    "propose",
    "refuse_files_without_format",
]
