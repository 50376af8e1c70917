"""What tests read off a page, and how they give its names to an enemy."""

import json
import re
from html.parser import HTMLParser

HOSTILE = "<script>alert('cost')</script><a href=\"https://example.com\">&amp;"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text outside scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self.within = [], "", None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.within = tag

    def handle_endtag(self, tag):
        self.within = None

    def handle_data(self, data):
        self.text += "" if self.within in {"script", "style"} else data


def embedded(html):
    """The figures as the page's script reads them."""
    return json.loads(re.search(r'<script type="application/json" id="figures">(.*?)</script>', html, re.S).group(1))


def renamed(summary, name):
    """The same report with another name for its first constraint, state and action, wherever they appear."""
    text, old = json.dumps(summary.model_dump()), summary.costs[1].name
    text = text.replace(json.dumps(old), json.dumps(name))
    differences = summary.differences
    for word in (differences.actions[0], *(state.state for state in differences.states[:1])):
        text = text.replace(json.dumps(word), json.dumps(f"{name}{word}"))
    return type(summary).model_validate(json.loads(text))
