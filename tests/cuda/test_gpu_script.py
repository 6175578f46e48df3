"""The script for the first hour on a GPU runs to its end."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_script_writes_its_table(tmp_path, fake):
    script = ROOT / "tests" / "benchmarks" / "gpu.py"
    output = tmp_path / "table.md"
    command = [sys.executable, str(script), "--tiny", "--skip-tests", "--output", str(output)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = output.read_text().splitlines()
    assert any(line.startswith("check, float32: passed") for line in lines)
    assert any(line.startswith("check, TF32: failed") for line in lines)
    rows = [line.split(" | ") for line in lines if line.startswith("| quickstart")]
    assert len(rows) == 4
    for row in rows:
        assert float(row[3].replace(",", "")) > 0, row
