"""`seqtrain init`: from data files to a config that suits them."""

from seqtrain.proposal.inspection import data_format
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.proposal import Proposal, propose

__all__ = ["InitOptions", "Proposal", "data_format", "propose"]
