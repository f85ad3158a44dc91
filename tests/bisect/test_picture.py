"""Pictures of a posterior."""

import xml.etree.ElementTree as ET

from bisectbot.bisect import Evidence, Side, picture

POSTERIOR = [(1, 0.02), (2, 0.9), (3, 0.05), (4, 0.0)]
EVIDENCE = [
    Evidence(1, 3, 2, 10.0, Side.GOOD, 0.001),
    Evidence((0, 2), 2, 1, 12.5, Side.BAD, 800.0),
    Evidence(0, 1, 1, 10.0, Side.GOOD, 0.0),
]


def test_text_shows_bars_above_what_was_tested():
    assert picture.text(POSTERIOR, EVIDENCE, name=lambda c: f"c{c}") == "▁█▁ \n+-  \nc2 0.9  c3 0.05  c1 0.02"


def test_text_sums_commits_that_share_a_column():
    many = [(c, 1 / 1000) for c in range(1000)]
    bars, marks, _ = picture.text(many, [], width=50).split("\n")
    assert bars == "█" * 50
    assert marks == " " * 50


def test_svg_is_well_formed_and_names_what_it_shows():
    root = ET.fromstring(picture.svg(POSTERIOR, EVIDENCE, name=lambda c: f"<{c}>"))
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "<2>: 0.9" in titles
    assert "<2>: bad, level 12.5, 2 runs in 1 boots" in titles
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 2


def test_nothing_to_show():
    assert picture.text([], []) == ""
    ET.fromstring(picture.svg([], []))
