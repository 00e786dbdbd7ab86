"""``DeviceSettings``: settings of programs with the properties behind them, as tables, lines to paste and a report."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack import _native
from headstack._native import Field
from headstack.io import tables
from headstack.io.counts import counted
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.measurement.tests.settings.products.setting import Context, Setting
from headstack.measurement.tests.settings.products.table import PRODUCTS
from headstack.measurement.tests.settings.properties import DESCRIBED, Estimate, Origin, Property, Unit
from headstack.report.figures import Report, Section, Table
from headstack.results import words
from headstack.results.report import provenance
from headstack.results.results import Results

STORED = Stored("settings")
SHOWN = (Property.WRITE_4K, Property.WRITE_SEQUENTIAL, Property.READ_4K_KNEE, Property.SYNC_8K)
"""Properties of which the first known one is in the answer."""


def format_value(value: float | None, unit: Unit) -> str:
    """Formats a figure with its unit; ``not known`` for ``None``.

    >>> from headstack.measurement.tests.settings.outcome import format_value
    >>> format_value(5.58e9, "B/s")
    '5.58 GB/s'
    """
    if value is None:
        return "not known"
    if unit == "ms":
        return words.time(value)
    if unit == "B/s":
        factor, prefix = next((f, p) for f, p in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")) if value >= f)
        return f"{words.number(value / (factor or 1.0))} {prefix}B/s"
    return words.number(value) if unit == "requests" else f"{words.number(value)} {unit}".replace(" /s", "/s")


def format_interval(estimate: Estimate, unit: Unit) -> str:
    """Formats the interval; an upper bound of a figure that is not known."""
    if estimate.value is None:
        return "" if estimate.at_most is None else f"at most {format_value(estimate.at_most, unit)}"
    if estimate.low is None or estimate.high is None:
        return "not known"
    return f"{format_value(estimate.low, unit)} to {format_value(estimate.high, unit)}"


@dataclass(frozen=True)
class DeviceSettings(Tabular):
    """Settings of products for a device, and the properties that they were derived from."""

    target: str
    origin: Origin
    products: Sequence[str]
    context: Context
    results: Results
    """The runs."""
    ended_early: str | None
    notes: Sequence[str] = ()
    """Remarks on the target."""

    fields = (
        Field("product", "text", "", "product, as on the command line"),
        Field("setting", "text", "", "name of the setting"),
        Field("value", "text", "", "value in the product's syntax; empty if not known"),
        Field("low", "figure", "", "lower bound of the interval of the value, in the unit of the setting"),
        Field("high", "figure", "", "upper bound of the interval of the value"),
        Field("at_most", "figure", "", "largest possible value, if the value is not known"),
        Field("origin", "text", "", "measured (95 % confidence interval) or predicted (90 % prediction interval)"),
        Field("properties", "text", "", "properties of the device behind the value"),
        Field("figures", "text", "", "the figures of these properties"),
        Field("formula", "text", "", "formula of the value"),
        Field("default", "text", "", "default of the product"),
        Field("confidence", "text", "", "confidence in the formula: high, medium or low"),
        Field("source", "text", "", "source of the formula"),
        Field("trap", "text", "", "a common error with this setting"),
        Field("note", "text", "", "how the figure was found, or the reason why it is not known"),
        Field("line", "text", "", "the line to paste, without the lines around it"),
    )

    def settings(self, product: str) -> list[Setting]:
        """Returns the settings of a product.

        >>> [setting.value for setting in hs.settings("aws-gp3-500", "mysql").settings("mysql")]
        ['1800', '3000', '0']
        """
        return PRODUCTS[product].settings(self.context)

    def lines(self, product: str) -> list[str]:
        """Returns the lines of a product to paste.

        >>> hs.settings("aws-gp3-500", "mysql").lines("mysql")[0]
        'innodb_io_capacity = 1800'
        """
        return PRODUCTS[product].block(self.settings(product), self.context)

    def rows(self) -> list[dict[str, Any]]:
        """Returns a row for each setting.

        >>> hs.settings("aws-gp3-500", "mysql").rows()[0]["default"]
        '10000 (200 before 8.4)'
        """
        return [self._row(product, setting) for product in self.products for setting in self.settings(product)]

    def _row(self, product: str, setting: Setting) -> dict[str, Any]:
        figure, properties = setting.figure, self.context.properties
        figures = [format_value(properties[prop].value, DESCRIBED[prop].unit) for prop in setting.properties]
        notes = dict.fromkeys(note for prop in setting.properties if (note := properties[prop].note))
        return {
            "product": product,
            "setting": setting.name,
            "value": setting.value,
            "low": figure.low,
            "high": figure.high,
            "at_most": figure.at_most,
            "origin": self.origin,
            "properties": " ".join(prop.value for prop in setting.properties),
            "figures": ", ".join(figures),
            "formula": setting.formula,
            "default": setting.default,
            "confidence": setting.confidence,
            "source": setting.source,
            "trap": setting.trap or None,
            "note": "; ".join(notes) or figure.note or None,
            "line": setting.text.strip(),
        }

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns a row for each setting.

        >>> len(hs.settings("aws-gp3-500", "mysql").table_rows())
        3
        """
        return self.rows()

    def property_rows(self) -> list[dict[str, Any]]:
        """Returns a row for each property of the device.

        >>> [row["property"] for row in hs.settings("aws-gp3-500", "mysql").property_rows()]
        ['read_4k_depth_1', 'write_16k']
        """
        estimates = self.context.properties.estimates
        return [
            {
                "property": prop.value,
                "words": DESCRIBED[prop].words,
                "unit": DESCRIBED[prop].unit,
                "value": estimates[prop].value,
                "low": estimates[prop].low,
                "high": estimates[prop].high,
                "at_most": estimates[prop].at_most,
                "origin": estimates[prop].origin,
                "note": estimates[prop].note,
            }
            for prop in Property
            if prop in estimates
        ]

    def answer(self) -> str:
        """Returns a sentence with the number of known settings, and the figure that matters most.

        >>> hs.settings("aws-gp3-500", "mysql").answer()
        'aws-gp3-500: 3 settings for mysql, predicted'
        """
        rows = self.rows()
        count = sum(row["value"] is not None for row in rows)
        properties = self.context.properties
        main = next((prop for prop in SHOWN if properties[prop].value is not None), None)
        figure = ""
        if main is not None:
            estimate, described = properties[main], DESCRIBED[main]
            interval = f" ({format_interval(estimate, described.unit)})" if estimate.has_interval else ""
            figure = f"; {described.words}: {format_value(estimate.value, described.unit)}{interval}"
        share = f"{counted(count, 'setting')}" if count == len(rows) else f"{count} of {counted(len(rows), 'setting')}"
        return f"{self.target}: {share} for {', '.join(self.products)}, {self.origin}{figure}"

    def _unknown(self) -> list[str]:
        """Returns the reason for each group of settings that are not known."""
        names: dict[str, list[str]] = {}
        for row in self.rows():
            if row["value"] is None:
                names.setdefault(row["note"] or "not measured", []).append(row["setting"])
        return [f"not known: {', '.join(dict.fromkeys(group))}: {why}" for why, group in names.items()]

    def _without_interval(self) -> list[str]:
        """Returns the reasons why figures have no interval, each with the number of figures."""
        estimates = self.context.properties.estimates.values()
        reasons = Counter(
            e.note for e in estimates if e.value is not None and not e.has_interval and "interval" in e.note
        )
        return [f"{counted(count, 'figure')}: {why}" for why, count in reasons.items()]

    def _traps(self) -> list[str]:
        """Returns the trap of each setting that has one."""
        return [f"{row['setting']}: {row['trap']}" for row in self.rows() if row["trap"]]

    def remarks(self) -> list[str]:
        """Returns the settings that are not known and why, remarks on the target and on intervals, and the traps.

        >>> hs.settings("aws-gp3-500", "mysql").remarks()[-1]
        'innodb_io_capacity_max: innodb_flush_sync (on) ignores both at checkpoints.'
        """
        return [*self._unknown(), *self.notes, *self._without_interval(), *self._traps()]

    def block(self) -> str:
        """Returns the lines to paste of all products, each under a comment with its name and file.

        >>> hs.settings("aws-gp3-500", "mysql").block().splitlines()[0]
        '# MySQL (InnoDB): my.cnf, [mysqld]'
        """
        return "\n\n".join(
            "\n".join([f"# {PRODUCTS[name].title}: {PRODUCTS[name].file}", *self.lines(name)]) for name in self.products
        )

    def report(self) -> Report:
        """Returns settings, lines and properties as a report.

        >>> hs.settings("aws-gp3-500", "mysql").report().title
        'Settings: aws-gp3-500'
        """
        columns = ["product", "setting", "value", "default", "formula", "figures", "confidence", "source"]
        rows = self.rows()
        settings = Table("settings", "Settings", columns, [[row[column] for column in columns] for row in rows])
        figures = [
            [DESCRIBED[prop].words, format_value(e.value, unit), format_interval(e, unit), e.origin, e.note]
            for prop, e in ((prop, self.context.properties[prop]) for prop in self._ordered())
            for unit in (DESCRIBED[prop].unit,)
        ]
        heads = ["property", "value", "interval", "origin", "note"]
        pasted = [
            Table(f"lines-{name.replace('.', '-')}", PRODUCTS[name].title, [PRODUCTS[name].file], lines)
            for name in self.products
            for lines in ([[line] for line in self.lines(name)],)
        ]
        remarks = self.remarks()
        ended = [f"Ended early: {self.ended_early}."] if self.ended_early else []
        return Report(
            f"Settings: {self.target}",
            "",
            "\n\n".join([f"{self.answer()}.", *ended]),
            [
                Section("Settings", "", [settings]),
                Section("Lines to paste", "", pasted),
                Section("Properties", "", [Table("properties", "Properties of the device", heads, figures)]),
            ],
            (),
            provenance(self.results),
            _native.version(),
            remarks="\n\n".join(f"{remark[:1].upper()}{remark[1:]}" for remark in remarks),
        )

    def _ordered(self) -> list[Property]:
        return [prop for prop in Property if prop in self.context.properties.estimates]

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes ``report`` as one HTML file. Needs the page, which every built package contains.

        >>> hs.settings("aws-gp3-500", "mysql").to_html("settings.html")
        """
        from headstack.report.html import write_html  # start-up time

        write_html(self.report(), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns an object: ``target``, ``settings``, ``lines`` of each product, ``properties``, and a row for
        each of the ``runs``.

        >>> '"innodb_io_capacity = 1800"' in hs.settings("aws-gp3-500", "mysql").to_json()
        True
        """
        content = {
            "version": _native.version(),
            "target": self.target,
            "origin": self.origin,
            "is_disk": self.context.is_disk,
            "ended_early": self.ended_early,
            "notes": list(self.notes),
            "settings": self.rows(),
            "lines": {name: self.lines(name) for name in self.products},
            "properties": self.property_rows(),
            "runs": list(self.results),
        }
        return tables.to_json({**STORED.head, **content}, path)
