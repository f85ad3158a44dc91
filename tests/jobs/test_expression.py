"""The expressions of job files: what they are worth, and that nothing but the language gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.jobs.evaluate import evaluate
from bisectbot.jobs.expression import parse_expression
from bisectbot.jobs.origin import Origin

JOB = {"fs": "ext4", "fs2": None, "nr_cpu": 128, "nr_task": "16t", "tests": ["a", "b"], "job": {"nr_vm": 2, "a-b": "x"}}


def worth(text: str):
    return evaluate(parse_expression(text, Origin("job.yaml", 7)), JOB.__getitem__)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("7 / 2", 3),
        ("-7 / 2", -4),
        ("7 / 2.0", 3.5),
        ("7 % 4 - 1", 2),
        ("1_000", 1000),
        ("nr_cpu / 2", 64),
        ("'a' + \"b#{nr_cpu + 1}\"", "ab129"),
        ("'it\\'s'", "it's"),
        ("nil", None),
        ("fs2 || 'none'", "none"),
        ("false || 0", 0),
        ("0 && 'zero is true'", "zero is true"),
        ("not true and false", False),
        ("!fs2", True),
        ("1 == true", False),
        ("1 == 1.0", True),
        ("'a' < 'b'", True),
        ("fs == 'ext4' ? '400M' : '256M'", "400M"),
        ("fs=='xfs'?1:2", 2),
        ("fs2.nil? ? 'without' : fs2", "without"),
        ("nr_task.to_i", 16),
        ("nil.to_i", 0),
        ("'x'.to_i", 0),
        ("'2.5'.to_f * 2", 5.0),
        ("job['nr_vm'].to_i <= 1", False),
        ("job['none'].to_i", 0),
        ("job['a-b']", "x"),
        ("job['none']&.upcase", None),
        ("tests.include?('a')", True),
        ("%w[ext4 xfs].include? (fs)", True),
        ("tests[-1]", "b"),
        ("tests[9]", None),
        ("tests.join('-')", "a-b"),
        ("[1, 2, 3].max", 3),
        ("[3, 1].sort", [1, 3]),
        ("(1..3).to_a", [1, 2, 3]),
        ("(1...3).size", 2),
        ("fs =~ /^ext\\d$/", 0),
        ("fs !~ /xfs|btrfs/", True),
        ("fs[/[a-z]+/]", "ext"),
        ("2.5.round", 3),
        ("1.25.round(1)", 1.3),
        ("'A,B'.downcase.split(',')", ["a", "b"]),
        ("case fs when 'xfs', 'ext4' then 1 else 2 end", 1),
        ("case fs when /^b/ then 1 end", None),
        ("case nr_cpu\nwhen 1..64\n 'small'\nelse\n 'large'\nend", "large"),
        ("if nr_cpu > 64 then 'a' elsif true then 'b' end", "a"),
        ("unless fs2; 'a'; else; 'b'; end", "a"),
        (":ext4", "ext4"),
        ("fs # a comment", "ext4"),
    ],
)
def test_worth(text: str, value: object):
    found = worth(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a value"),
        ("1 +", "expected a value"),
        ("(1", "expected `\\)`"),
        ("1 2", "expected an operator or the end"),
        ("'open", "not understood"),
        ("nothing", "`nothing` is no key of the job"),
        ("system('id')", "expected an operator or the end of the expression, found '\\('"),
        ("`id`", "'`' is not understood"),
        ("File.read('/etc/passwd')", "`File` is no key of the job"),
        ("fs.send('eval')", "method `send` is not understood"),
        ("fs.__class__", "method `__class__` is not understood"),
        ("nr_cpu.upcase", "an integer has no method `upcase`"),
        ("fs.include?(1, 2)", "expects 1 argument"),
        ("tests.join(1)", "`join` cannot take an integer"),
        ("fs + 1", "`\\+` expects numbers, not a string"),
        ("fs2 > 1", "`>` expects numbers, not nil"),
        ("1 / 0", "division by zero"),
        ("1.0 % 0", "division by zero"),
        ("9 ** 9 ** 9", "a power beyond 100"),
        ("99999 ** 99", "more than 30 digits"),
        ("(-8) ** 0.5", "a power beyond 100"),
        ("0 ** -1", "division by zero"),
        ("(1..99999999)", "a range of more than"),
        ("('a'..'z')", "a range expects two integers"),
        ("case fs when 'ext4' '400M' end", "expected `then` or a new line"),
        ("case fs else 1 end", "expected `when`"),
        ("if true then 1", "expected `end`"),
        ("fs =~ /(a+)+b/", "regular expression"),
        ("fs =~ /a*a*a*a*b/", "regular expression"),
        ("fs =~ /[/", "regular expression"),
        ("fs =~ /(/", "regular expression"),
        ("[3, 'a'].sort", "`sort` expects"),
        ("(" * 40 + "1" + ")" * 40, "nested deeper"),
        ("!" * 4000 + "1", "nested deeper"),
        ("+".join(["1"] * 5000), "more than 200 operators"),
        ("fs" + ".strip" * 100, "calls in a row"),
        ("+".join(["1"] * 150), "nested deeper"),
    ],
)
def test_refused_with_the_place(text: str, message: str):
    with pytest.raises(UserError, match=message) as caught:
        worth(text)
    assert str(caught.value).startswith("job.yaml:7: ")


def test_the_line_of_a_mistake_is_its_own():
    with pytest.raises(UserError, match=r"^job\.yaml:9: "):
        worth("case fs\nwhen 'ext4' then\n )\nend")


WORDS = st.one_of(
    st.just("\n"),
    st.sampled_from(
        """if case when then else end nil true fs nr_cpu job tests 1 2.5 'a' "b#{fs}" + - * / % < > ! ? : ( ) [ ] , .
    | = ; # ' " ` { } .. ** && || =~ == &. .to_i .sort .include? /a+/ %w[x""".split()  # noqa: SIM905
    ),
)


@given(
    st.one_of(
        st.lists(WORDS, max_size=25).map(" ".join), st.lists(WORDS, max_size=25).map("".join), st.text(max_size=40)
    )
)
def test_anything_is_a_value_or_an_error_with_its_place(text: str):
    try:
        worth(text)
    except UserError as error:
        assert str(error).startswith("job.yaml:")  # noqa: PT017


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9).filter(bool))
def test_integers_divide_downwards(a: int, b: int):
    assert worth(f"({a}) / ({b}) * ({b}) + ({a}) % ({b})") == a
