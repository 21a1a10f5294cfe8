"""Writing HTML: every text is escaped, and nothing else is a tag."""

from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *content: str | None, **attributes: str | int | None) -> Html:
    """An element.

    Args:
        name: Its name.
        *content: Texts, which are escaped, and elements; None is nothing.
        **attributes: Attributes; ``class_`` is ``class``, other underscores are hyphens, None leaves one out, and an
            empty text stands for a name alone.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + (f'="{escape(str(value))}"' if value != "" else "")
        for key, value in attributes.items()
        if value is not None
    )
    start = f"<{name}{written}>"
    return Html(start if name in _EMPTY else f"{start}{joined(*content)}</{name}>")


def joined(*content: str | None) -> Html:
    """Texts and elements, one after the other."""
    return Html("".join(of if isinstance(of, Html) else escape(of) for of in content if of is not None))


_EMPTY = {"img", "input", "meta", "link", "br", "hr", "col"}
