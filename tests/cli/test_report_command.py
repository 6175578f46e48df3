"""What `seqtrain report` promises: one page of a run's figures and errors, and no lost file."""

import json
from pathlib import Path

from tests.helpers.tiny import listing


def test_the_page_holds_the_scores_and_the_errors(beside, tmp_path, cli):
    before = listing(beside)
    ended = cli("report", "run", "-o", tmp_path / "r.html", "--steps")
    assert ended.out == ""
    assert "written" in ended.err
    assert listing(beside) == before
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    scores = cli("eval", "run", "--json").json
    assert f"{scores['accuracy']:.2%}" in page
    assert f"{scores['loss']:.4f}" in page
    for row in cli("errors", "run", "--json").json["errors"]:
        assert row["text"] in page
    digests = json.loads(Path("run/environment.json").read_text())["data"]
    for words in (*digests.values(), "test.tsv", "seqtrain fit run/config.yaml", "share read"):
        assert words in page
