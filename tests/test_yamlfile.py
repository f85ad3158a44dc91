"""YAML with places: every value knows its line, every complaint its file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter

from bisectbot.yamlfile import ConfigError, Seconds, Section, read, seconds, validate


class Inner(Section):
    size: int
    names: tuple[str, ...] = ()


class Outer(Section):
    label: str = ""
    wait: Seconds = 1.0
    parts: dict[str, Inner] = Field({})
    rest: tuple[Inner, ...] = ()


def document(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "x.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def complaints(tmp_path: Path, text: str | bytes) -> list[str]:
    path = document(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        validate(read(path), Outer)
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def test_every_value_knows_its_line(tmp_path: Path) -> None:
    found = read(document(tmp_path, "label: a\n\nparts:\n  one:\n    size: 1\nrest:\n- size: 2\n- {size: 3}\n"))
    assert found.data == {"label": "a", "parts": {"one": {"size": 1}}, "rest": [{"size": 2}, {"size": 3}]}
    assert found.line(("parts", "one", "size")) == 5
    assert found.line(("rest", 1, "size")) == 8
    assert found.line(("parts", "one", "colour")) == 4
    assert found.line(("nowhere",)) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lable: a\n", ["x.yaml:1: unknown key lable; did you mean label?"]),
        ("zzz: a\n", ["x.yaml:1: unknown key zzz; known keys here: label, parts, rest, wait"]),
        (
            "parts:\n  a: {size: 1, sise: 2}\n  b: {}\n",
            ["x.yaml:3: parts.b.size is missing; add it", "x.yaml:2: unknown key parts.a.sise; did you mean size?"],
        ),
        ("rest:\n- size: 1\n- size: big\n", ["x.yaml:3: rest.1.size: Input should be a valid integer, unable to"]),
        ("wait: 5 minutes\n", ["x.yaml:1: wait: expected a duration such as 90s, 10m, 2h or 1d, found '5 minutes'"]),
        ("label: a\nlabel: b\n", ["x.yaml:2: key 'label' stands here twice"]),
        ("parts: {a: {size: 1}, a: {size: 2}}\n", ["x.yaml:1: key 'a' stands here twice"]),
        ("label: [a\n", ["x.yaml:2: not YAML: "]),
        ("label: a\n\tb: c\n", ["x.yaml:2: not YAML: "]),
        ("label: !!python/name:os.system\n", ["x.yaml:1: not YAML: could not determine a constructor for the tag"]),
        ("--- {}\n--- {}\n", ["x.yaml:2: not YAML: but found another document"]),
        ("rest: &r\n- *r\n", ["x.yaml:1: an alias stands inside of what it names"]),
        ("just words\n", ["x.yaml:1: expected keys and values, found 'just words'"]),
        (b"label: \xff\n", ["x.yaml: cannot be read: "]),
        (b"label: a\x00b\n", ["x.yaml: not YAML: "]),
    ],
)
def test_each_complaint_is_one_line_with_its_place(tmp_path: Path, text: str | bytes, told: list[str]) -> None:
    found = complaints(tmp_path, text)
    assert len(found) == len(told)
    for line, start in zip(sorted(found), sorted(told), strict=True):
        assert line.startswith(start)
        assert "\n" not in line


def test_what_is_quoted_stays_short(tmp_path: Path) -> None:
    (line,) = complaints(tmp_path, f"label: [{'x, ' * 1000}x]\n")
    assert len(line) < 250


def test_a_folder_or_nothing_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file; create it or correct the path"):
        read(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be read: "):
        read(tmp_path)


def test_an_empty_file_has_no_keys(tmp_path: Path) -> None:
    assert validate(read(document(tmp_path, "# nothing\n")), Outer) == Outer()


def test_merged_keys_are_no_doubled_keys(tmp_path: Path) -> None:
    text = "parts:\n  a: &a {size: 1, names: [x]}\n  b: &b\n    <<: *a\n    size: 2\n  c: *b\n"
    parts = validate(read(document(tmp_path, text)), Outer).parts
    assert parts["b"] == parts["c"] == Inner(size=2, names=("x",))


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90), (90, 90), ("90s", 90), ("1.5m", 90), ("2 h", 7200), ("1d", 86400), (0, 0)]
)
def test_durations(text: object, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "m", "-1s", "1w", "1h30m", "nan", "inf", True, None, float("nan"), [1], "１０s"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        seconds(text)


@given(st.floats(0, 1e9), st.sampled_from("smhd"))
def test_durations_scale_with_their_unit(number: float, unit: str) -> None:
    text = f"{number:.3f}"
    scale = {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
    assert TypeAdapter(Seconds).validate_python(text + unit) == pytest.approx(float(text) * scale)
