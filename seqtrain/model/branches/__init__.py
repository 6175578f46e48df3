"""Branches of the classifier. Each has its own file and the interface of `branch.Branch`."""

from seqtrain.model.branches.branch import Branch
from seqtrain.model.branches.kernels import KernelBranch
from seqtrain.model.branches.ngrams import NgramBranch
from seqtrain.model.branches.pretrained import PretrainedBranch
from seqtrain.model.branches.recurrent import RecurrentBranch
from seqtrain.model.branches.trees import TreeBranch

BRANCHES: tuple[type[Branch], ...] = (
    RecurrentBranch,
    NgramBranch,
    KernelBranch,
    TreeBranch,
    PretrainedBranch,
)
"""Branches in the order of their logits. The state dict has no prefix for the first."""
