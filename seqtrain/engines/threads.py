"""The threads of forked processes."""

import os
from functools import cache, partial

import torch


@cache
def one_thread_after_fork() -> None:
    """Make processes that are forked later compute with one thread.

    OpenMP's threads, which torch uses, aren't forked. So a forked process that uses several hangs
    if this process has used several. Only the first call has an effect.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))
