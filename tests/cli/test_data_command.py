"""What `seqtrain data` promises: figures and rows to look at, without training."""

from tests.helpers.tiny import listing, rows, write_table


def test_json_holds_figures_of_each_split(project, cli):
    before = listing(project)
    ended = cli("data", "c.yaml", "--json")
    assert listing(project) == before
    found = ended.json
    assert {name: split["rows"] for name, split in found["splits"].items()} == {
        "train": 32,
        "validation": 8,
        "test": 20,
    }
    train = found["splits"]["train"]
    assert train["labels"].keys() == {"up", "down"}
    assert sum(train["labels"].values()) == 32
    assert train["lengths"]["0.5"] >= train["lengths"]["0.0"] >= 1
    assert found["splits"]["test"]["unknown"] > 0
    assert 0 <= found["padding"]["bucketing"] <= found["padding"]["random"] < 1


def test_the_screen_begins_as_that_of_fit(project, cli):
    shown = cli("data", "c.yaml").out
    fit = cli("fit", "c.yaml", "--set", "training.max_epochs=1").err
    first = fit[: fit.index("parameters")].splitlines()[:-1]
    assert "length: median" in fit
    assert {*first} < {*shown.splitlines()}
    assert "length before any cut" in shown


def test_rows_to_look_at_are_named(project, cli):
    texts = rows(40, seed=1)
    extra = [texts[0], (texts[1][0].upper(), "sideways"), ("", "up"), ("b\u0430d \x1b[31m", "up")]
    write_table(project / "train.tsv", [*texts, *extra])
    ended = cli("data", "c.yaml", "--set", "data.validation=null")
    assert "\x1b" not in ended.out
    for words in (
        "train line 2, train line 42",
        "train line 3, train line 43",
        "labels with fewer than 5 rows in train: 'sideways' (1)",
        "train: fit would refuse 1 row",
        "train.tsv:44: the sequence is empty",
        r"'b\u0430d' (1)",
    ):
        assert words in ended.out
    assert "train.tsv:44" not in ended.err  # it is said once
    cli("fit", "c.yaml", code=2)
