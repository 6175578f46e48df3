"""The line that people read: which step turned the answer, in colour, and long lines cut short."""

import pytest
import torch

from seqtrain.api.predict import StepPredictions
from seqtrain.cli.output.prediction_rows import step_line


def prediction(
    up: list[float], tokens: list[str] | None, tokenizer: str | None = "word"
) -> StepPredictions:
    """Return answers between down and up, by the probability of up after every step."""
    probabilities = torch.tensor([[1 - p, p] for p in up], dtype=torch.float64)
    return StepPredictions(("down", "up"), probabilities, tokens, tokenizer, 0.0)


def colors(made: StepPredictions, word: str) -> set[str]:
    line = step_line(made)
    start = line.plain.index(word)
    return {str(span.style) for span in line.spans if span.start <= start < span.end}


def test_turns_are_marked_and_colour_and_weight_tell_the_answer_and_how_sure_it_is():
    made = prediction([0.05, 0.4, 0.7, 0.95], ["one", "two", "three", "four"])
    assert made.decided == 3
    assert step_line(made).plain == "[down 95%] one two [up 70%] three four"
    assert colors(made, "one") == {"bold cyan"}
    assert colors(made, "two") == {"cyan"}
    assert colors(made, "three") == {"magenta"}
    assert colors(made, "four") == {"bold magenta"}
    assert colors(made, "[up 70%]") == {"reverse magenta"}


def test_the_middle_of_a_long_sequence_is_left_out():
    tokens = [f"w{n}" for n in range(1000)]
    line = step_line(prediction([n > 500 for n in range(1000)], tokens)).plain
    assert line.startswith("[down 100%] w0 w1 ")
    assert " w99 … 800 steps … [up 100%] w900 " in line
    assert line.endswith(" w999")


@pytest.mark.parametrize(
    ("tokenizer", "tokens", "shown"),
    [
        (None, ["a", "[b]", "\x1b[31m"], "a [b] \\x1b[31m"),
        ("char", ["a", " ", "漢", "\n"], "a 漢\\n"),
        ("byte", [chr(byte) for byte in "né漢".encode()], "né漢"),
        ("bpe", ["the", "Ġna", "Ã", "¯", "ve", "Ċ"], "the naïve\\n"),
    ],
)
def test_tokens_read_as_the_text_they_are_of(tokenizer, tokens, shown):
    line = step_line(prediction([0.9] * len(tokens), tokens, tokenizer))
    assert line.plain == f"[up 90%] {shown}"


def test_series_show_bars_as_high_as_the_answer_is_probable():
    assert step_line(prediction([0.51, 0.8, 1.0, 0.0], None)).plain == "[up 51%] ▅▇█ [down 100%] █"
