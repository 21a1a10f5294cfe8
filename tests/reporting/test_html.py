import pytest

from lmms_eval_tasks.reporting.html import Html, joined, tag


def test_elements():
    assert tag("p", "a ", tag("b", "c"), None) == "<p>a <b>c</b></p>"
    assert tag("input", class_="x", aria_label="l", hidden="", size=3, value=None) == (
        '<input class="x" aria-label="l" hidden size="3">'
    )


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=1>', "a & b", "'"])
def test_texts_are_never_tags(text):
    written = tag("p", text, title=text)
    assert "<script" not in written and "<img" not in written
    assert written.count("<") == 2 and written.count('"') == 2


def test_what_is_html_already_stays():
    assert joined(Html("<i>x</i>"), "<i>") == "<i>x</i>&lt;i&gt;"
