"""YAML as job files use it, and the revisions of keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.jobs.document import Document, Template, parse_documents, read_lines
from bisectbot.jobs.origin import Origin
from bisectbot.jobs.revise import copied, revised


def documents(text: str):
    return parse_documents(read_lines(text.encode(), "job.yaml"), "job.yaml")


def body(text: str):
    return documents(text)[0].body


def revise(*texts: str):
    result = Document({}, Origin("job.yaml", 1))
    for text in texts:
        result = revised(result, documents(text)[0])
    return dict(result.body)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16", 16),
        ("-3", -3),
        ("2.50", 2.5),
        ("50%", "50%"),
        ("0x42e", "0x42e"),
        ("010", "010"),
        ("1:30", "1:30"),
        ("1e3", "1e3"),
        ("2022-05-10", "2022-05-10"),
        ("yes", True),
        ("nil", None),
        ("~", None),
        ("", None),
        ("'nil'", "nil"),
        ("'16'", "16"),
        ("[a, b]", ["a", "b"]),
        ("[nfsv4, ]", ["nfsv4", None]),
        ("[nfsv4, nil]", ["nfsv4", None]),
        ("[a, # why\n  ]", ["a", None]),
        ("['x,']", ["x,"]),
        ("[[a,], b]", [["a", None], "b"]),
        ("[]", []),
        ("!!str 5", "5"),
    ],
)
def test_values(text: str, value: object):
    assert body(f"key: {text}") == {"key": value}


def test_comments_after_a_blank_line_are_kept_where_they_stand():
    text = "# head\na: 1\n# no\n\n#! hosts/x\nb:\n\n  # inner\n  c: 1\n\n  # inner too\n"
    found = body(text + "d:\n- x\n\n# in a list\n- y\n\n# end\n")
    assert list(found) == ["# head", "a", "#! hosts/x", "b", "d", "# in a list", "# end"]
    assert list(found["b"]) == ["c", "# inner too"]
    assert found["d"] == ["x", "y"]


def test_comments_belong_to_their_document():
    first, second = documents("a: 1\n\n# one\n---\n\n# two\nb: 1\n")
    assert list(first.body) == ["a", "# one"]
    assert list(second.body) == ["# two", "b"]


def test_keys_of_an_expanded_job_of_2022_are_comments():
    assert list(body(":#! jobs/unixbench.yaml:\nsuite: unixbench\n")) == [":#! jobs/unixbench.yaml", "suite"]


def test_templates_stand_alone_embedded_and_over_lines():
    found = body('a: {{ 1 + 1 }}\nb: "x{{ n }}y"\nc: {{ case n\n  when 1 then 2\n  end }}\nd: 4\n')
    names = {"n": 1}.__getitem__
    assert [found[key].render(names) for key in "abc"] == [2, "x1y", 2]
    assert isinstance(found["a"], Template)
    assert str(found["b"]) == "x{{ n }}y"
    assert found["d"] == 4


def test_anchors_are_ordinary_yaml():
    found = body("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\nz: {<<: [*x, {c: 4}]}\n")
    assert found["y"] == {"a": 1, "b": 3}
    assert found["z"] == {"a": 1, "b": 2, "c": 4}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1\n", "job.yaml:2: not YAML: expected ',' or '\\]'"),
        ("a: 1\n- b\n", "job.yaml:2: not YAML"),
        ("- a\n", "job.yaml:1: a job is a mapping"),
        ("a: *b\n", "job.yaml:1: not YAML: found undefined alias"),
        ("a: 1\nb: !ruby/object:X {}\n", "job.yaml:2: the tag '!ruby/object:X'"),
        ("a: !ruby/sym x\n", "job.yaml:1: the tag '!ruby/sym'"),
        ("[a]: 1\n", "job.yaml:1: a key is a word"),
        ("a{{ 1 }}: 1\n", "job.yaml:1: .* in keys"),
        ("a:\n  {{ 1 +\n", "job.yaml:2: `{{` has no `}}`"),
        ("a: 1\nb: {{ 1 + }}\n", "job.yaml:2: expected a value"),
        ("a: &a [*a]\n", "job.yaml:1: nested deeper"),
        ("a: " + "[" * 1000, "job.yaml:1: nested deeper"),
        ("a: 1\nb: \x07\n", "job.yaml:2: the character U\\+0007"),
        ("a: \ue0000\ue001\n", "job.yaml:1: the characters U\\+E000"),
        ("a: " + "x" * 20000, "job.yaml:1: a line of more than"),
        ("<<: 1\n", "job.yaml:1: `<<` expects"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"{b}: &{b} [{','.join(['*' + a] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)),
            "more than 100000 values",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, message: str):
    with pytest.raises(UserError, match=message):
        documents(text)


def test_bytes_that_are_no_text():
    with pytest.raises(UserError, match=r"^x:2: expected UTF-8 text, found byte 0xff"):
        read_lines(b"a: 1\nb: \xff\n", "x")


@pytest.mark.parametrize(
    ("texts", "result"),
    [
        (["a.b.c: 1"], {"a": {"b": {"c": 1}}}),
        (["a: {b: 1, c: 2}", "a.b: 3"], {"a": {"b": 3, "c": 2}}),
        (["a: {b: 1, c: 2}", "a: {b: 3}"], {"a": {"b": 3}}),
        (["a: [1, 2]", "a+: [2, 3]"], {"a": [1, 2, 3]}),
        (["a: 1", "a+: 2"], {"a": [1, 2]}),
        (["a+: [1]"], {"a": [1]}),
        (["a: {b: 1}", "a+: {c: 2}"], {"a": {"b": 1, "c": 2}}),
        (["a: {b: [1]}", "a.b+: 2"], {"a": {"b": [1, 2]}}),
        (["a: [1, 2, 3]", "a-: [2]"], {"a": [1, 3]}),
        (["a: {b: 1, c: 2}", "a-: b"], {"a": {"c": 2}}),
        (["a: {b: 1, c: 2}", "a.b-:"], {"a": {"c": 2}}),
        (["a: 1\nb: 2", "a-:"], {"b": 2}),
        (["a: 1", "a-: 2"], {"a": 1}),
        (["b: 1", "a.x-: 2"], {"b": 1}),
        (["perf-profile:", "perf-profile.delay: 15"], {"perf-profile": {"delay": 15}}),
        (["mail_to: a@x", "mail_to: b@x"], {"mail_to": ["a@x", "b@x"]}),
        (["need_kconfig: [A]", "need_kconfig: [B]"], {"need_kconfig": ["A", "B"]}),
        (["need_memory: 1G", "need_memory: 2G"], {"need_memory": "2G"}),
        (["a: 1", "# x\nb: 2"], {"a": 1, "# x": None, "b": 2}),
    ],
)
def test_revisions(texts: list[str], result: dict[str, object]):
    assert revise(*texts) == result


def test_a_scalar_has_no_inside():
    with pytest.raises(UserError, match=r"^job.yaml:1: a\.b: 'a' is 5 here"):
        revise("a: 5", "a.b: 1")


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab1%", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc.+-", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
BODIES = st.dictionaries(st.text("abc.+-", min_size=1, max_size=5), TREES, max_size=4)


@given(BODIES, BODIES)
def test_a_revision_changes_neither_side(first: dict[str, object], second: dict[str, object]):
    base, change = (Document(tree, Origin("x", 1)) for tree in (first, second))
    before = copied(first), copied(second)
    try:
        revised(base, change)
    except UserError as error:
        assert str(error).startswith("x:1: ")  # noqa: PT017
    assert (first, second) == before
