"""From a data file to a config: what the data looks like, and which settings suit such data.

Columns → facts → rules → YAML with a reason for each choice. Free of torch.
"""

from seqtrain.proposal.proposal import Wishes, propose

__all__ = ["Wishes", "propose"]
