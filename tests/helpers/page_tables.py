"""Tables of pages that follow from the code. `python -m tests.helpers.page_tables` writes them."""

import ast
import re
from importlib import import_module
from pathlib import Path

from seqtrain.config import key_reference
from seqtrain.tables.conversions.convert import options_taken
from seqtrain.tables.conversions.forms import CONVERSIONS
from seqtrain.tables.formats import FORMATS


def format_table() -> str:
    """Return the Markdown table of all formats in data/README.md."""
    lines = ["| file | what one row is | columns |", "|---|---|---|"]
    columns = {"none": "none", "named": "names of fields", "delimited": "names, or indexes from 0"}
    for format in FORMATS.values():
        endings = ", ".join(f"`{ending}`" for ending in format.endings) or f"`{format.name}`"
        lines.append(f"| {endings} | {format.row} | {columns[format.columns]} |")
    return "\n".join(lines) + "\n"


def file_table() -> str:
    """Return the Markdown table of all files of the package, with the first line of each."""
    lines = ["| file of the package | contents |", "|---|---|"]
    for path in sorted(PACKAGE.rglob("*.py")):
        documentation = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if documentation and path.name != "__init__.py":
            name = path.relative_to(PACKAGE).as_posix()
            lines.append(f"| [{name}]({name}) | {documentation.splitlines()[0]} |")
    return "\n".join(lines) + "\n"


def form_table() -> str:
    """Return the Markdown table of all forms of `seqtrain convert`, with the options of each."""
    lines = ["| form | what it writes | needs | may have |", "|---|---|---|---|"]
    for form, target in CONVERSIONS.items():
        module, _, name = target.function.partition(".")
        function = getattr(import_module(f"seqtrain.tables.conversions.{module}"), name)
        cells = []
        taken = options_taken(function)
        for group in (True, False):
            options = [name for name, is_needed in taken.items() if is_needed == group]
            cells.append(", ".join(f"`--{name.replace('_', '-')}`" for name in options))
        lines.append(f"| `{form}` | {target.help} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "seqtrain"
TABLES = {
    "configs/README.md": key_reference,
    "data/README.md": format_table,
    "seqtrain/README.md": file_table,
    "seqtrain/cli/README.md": form_table,
}
"""Maps each page to the function that returns its table, which replaces the one of its heading."""


def current(page: str) -> str:
    """Return the text of a page with the table as it should be."""
    table = TABLES[page]()
    heading = table.splitlines()[0]
    old = re.compile(re.escape(heading) + r"\n(?:\|.*\n)*")
    return old.sub(lambda _: table, (ROOT / page).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in TABLES:
        (ROOT / page).write_text(current(page), encoding="utf-8")
