"""Templates at load time."""

import pytest

from bisectbot.errors import UserError
from bisectbot.jobs.document import read_lines
from bisectbot.jobs.erb import render

JOB = {"arch": "x86_64", "nr_vm": 2}


def shown(text: str) -> str:
    return "".join(line.text + "\n" for line in render(read_lines(text.encode(), "t"), JOB))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a: 1\n", "a: 1\n"),
        ("a: <%= 1 + 1 %>x<%= job['arch'] %>\n", "a: 2xx86_64\n"),
        ("% if job['nr_vm'] <= 1\na:\n% elsif job['arch'] == 'x86_64'\nb:\n% else\nc:\n% end\nd:\n", "b:\nd:\n"),
        ("<% unless job['none'] %>\na:\n<% end %>\nb:\n", "a:\nb:\n"),
        ("a: <% if true %>1<% else %>2<% end %>\n", "a: 1\n"),
        ("<% if job['arch'] =~ /86/ then -%>\na:\n<% end -%>\n", "a:\n"),
        ("% case job['arch']\n% when 'arm64'\na:\n% when /^x/ then\nb:\n% else\nc:\n% end\n", "b:\n"),
        ("% [1, 2].each do |i|\na<%= i %>:\n% end\n", "a1:\na2:\n"),
        ("% [].each do |i|\na<%= i %>:\n% end\nb:\n", "b:\n"),
        ("% if false\n% [1].each do |i|\na:\n% end\n% end\nb:\n", "b:\n"),
        ("% n = 3\na: <%= n * 2 %>\n", "a: 6\n"),
        ("<%# a\nremark %>a:\n%% b\nc: <%% %%>\n% # so\n", "a:\n% b\nc: <% %>\n"),
        ("a: <%=\n 1 +\n 2 %>\nb:\n", "a: 3\nb:\n"),
    ],
)
def test_shown(text: str, result: str) -> None:
    assert shown(text) == result


def test_lines_keep_their_places() -> None:
    lines = render(read_lines(b"a:\n% if true\nb:\n% end\n<%\n if true %>\nc:\n<% end %>\nd:\n", "t"), JOB)
    assert [(line.text, line.origin.line) for line in lines] == [("a:", 1), ("b:", 3), ("c:", 7), ("d:", 9)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n% if true\nb:\n", "t:2: `if true` has no `end`"),
        ("a:\n% end\n", "t:2: `end` without"),
        ("% else\n", "t:1: `else` without"),
        ("a:\n<% if true\n", "t:2: `<%` has no `%>`"),
        ("% require 'x'\n", "t:1: `require 'x'`: expected if, unless"),
        ("% system('id')\n", "t:1: .*: expected if, unless"),
        ("x: <%= `id` %>\n", "t:1: '`' is not understood"),
        ("% 5.each do |i|\n% end\n", "t:1: `5` is no list"),
        ("a:\n\n% if nothing\n% end\n", "t:3: `nothing` is no key"),
        ("% if true\n" * 40 + "% end\n" * 40, "nested deeper than 30"),
        ("% (1..9999).each do |i|\n% (1..9999).each do |j|\nx:\n% end\n% end\n", "prints more than"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message.replace("(", "\\(").replace("[", "\\[")):
        shown(text)
