"""From data files to a config that suits them: columns → facts → rules → commented YAML.

Free of torch.
"""

from seqtrain.proposal.proposal import Proposal, propose
from seqtrain.proposal.tables import Wishes

__all__ = ["Proposal", "Wishes", "propose"]
