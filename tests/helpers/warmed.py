"""Modules that the process loads from which all others are forked.

Nothing here computes with torch: its threads don't survive a fork. The collection of garbage leaves
out what is loaded, so that forked processes share it.
"""

import gc
from importlib import import_module
from pathlib import Path

import seqtrain
from seqtrain.cli.main import COMMANDS, load_command, program

LIBRARIES = (
    *("numpy.ctypeslib", "numpy.ma", "optuna", "scipy.optimize", "sklearn.linear_model"),
    "torch.distributed.run",
)
PACKAGE = Path(seqtrain.__file__).parent
LEFT_OUT = ("__main__.py", "sklearn.py", "engines/native/build.py")

for name in LIBRARIES:
    import_module(name)
for path in sorted(PACKAGE.rglob("*.py")):
    module = path.relative_to(PACKAGE)
    if path.name != "__init__.py" and str(module) not in LEFT_OUT:
        import_module(".".join(["seqtrain", *module.with_suffix("").parts]))
for command in (program(), *map(load_command, COMMANDS)):
    for parameter in command.params:
        getattr(parameter, "get_runtime_param", list)()  # else each process makes it anew
gc.collect()
gc.freeze()
