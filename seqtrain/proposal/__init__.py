"""From data files to a config that suits them: columns → facts → rules → commented YAML.

Free of torch.
"""

from seqtrain.proposal.proposal import propose
from seqtrain.proposal.tables import Wishes

__all__ = ["Wishes", "propose"]
