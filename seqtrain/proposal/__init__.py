"""From data files to a config that suits them: columns → facts → rules → commented YAML."""

from seqtrain.proposal.proposal import Proposal, propose
from seqtrain.proposal.tables import Wishes

__all__ = ["Proposal", "Wishes", "propose"]
