"""Give processes that the tests start the device of `fakecuda`, too: Python imports this first."""

import os

if os.environ.get("FAKE_CUDA"):
    import fakecuda  # noqa: F401
