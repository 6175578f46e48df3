"""Texts of a chart: whatever a config is named, the picture is well-formed."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from seqtrain.cli.output.svg import svg_text


def test_control_characters_leave_the_picture_well_formed() -> None:
    element = ElementTree.fromstring(svg_text(1, 2, "a\x1b[31m\x00\u202e<&\ud800"))
    assert element.text == "a\\x1b[31m\\x00\\u202e<&\\ud800"
