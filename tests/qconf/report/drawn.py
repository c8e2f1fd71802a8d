"""What a figure shows, read back from its marks and the scales that its panels name."""

import math
import re
import xml.etree.ElementTree as ET

NS = "{http://www.w3.org/2000/svg}"


class Panel:
    def __init__(self, element):
        self.element = element
        self.x, self.y = (_scale(element.get(f"data-{axis}")) for axis in "xy")
        self.unit = element.get("data-unit", "")

    def lines(self):
        """Vertices of each named line, in values; of stairs both ends of each step."""
        return {
            (each.get("data-name"), each.get("class")): [(self.x(x), self.y(y)) for x, y in vertices(each.get("d"))]
            for each in self.element.iter(f"{NS}path")
            if each.get("data-name")
        }

    def line(self, name):
        (found,) = [points for (called, _), points in self.lines().items() if called == name]
        return found

    def stairs(self, name):
        """Level from each x on."""
        return sorted(dict(self.line(name)).items())

    def titled(self, tag):
        for each in self.element.iter(f"{NS}{tag}"):
            title = each.find(f"{NS}title")
            yield each, "" if title is None else title.text

    def dots(self):
        return [(self.x(float(e.get("cx"))), self.y(float(e.get("cy"))), text) for e, text in self.titled("circle")]

    def bars(self):
        """(left, right, low, high, class, title) of each rectangle, in values."""
        for e, text in self.titled("rect"):
            left, top, wide, tall = (float(e.get(key)) for key in ("x", "y", "width", "height"))
            ends = self.x(left), self.x(left + wide), self.y(top + tall), self.y(top)
            yield *ends, e.get("class"), text


def panels(figure):
    return [Panel(each) for each in tree(figure).iter(f"{NS}g") if each.get("class") == "panel"]


def tree(figure):
    return ET.fromstring(figure.file)


def vertices(d):
    x = y = 0.0
    for command, numbers in re.findall(r"([MLHV])([-\d.,]+)", d):
        values = [float(each) for each in numbers.split(",")]
        if command == "H":
            x = values[0]
        elif command == "V":
            y = values[0]
        else:
            x, y = values
        yield x, y


def _scale(text):
    kind, *numbers = text.split()
    low, high, start, end = map(float, numbers)
    there, back = (math.log, math.exp) if kind == "log" else (float, float)
    return lambda place: back(there(low) + (place - start) / (end - start) * (there(high) - there(low)))
