"""From data files to a config that suits them: columns → facts → rules → commented YAML."""

from seqtrain.proposal.columns import Wishes
from seqtrain.proposal.proposal import Proposal, propose
from seqtrain.proposal.tables import data_format

__all__ = ["Proposal", "Wishes", "data_format", "propose"]
