/** The page: a report from its heading to its runs, or a figure on its own in a notebook. */

import { bars, isAlone } from "./bars";
import { Chart, type Linked } from "./chart";
import { badge, claimsOf, verdicts } from "./claims";
import { dataOf } from "./data";
import { fold, html, linked, paragraphs, svg } from "./dom";
import { heat } from "./heat";
import { lines } from "./lines";
import { looks, marked, nameOf, pointed } from "./looks";
import type { Axis, Bars, Figure, Given, Heat, Lines, Report, Section, Series } from "./report";
import { runsOf } from "./runs";
import { figure as shown } from "./scale";
import { grid, table } from "./table";

const charts: Chart[] = [];
/** The pictures of charts that are in the file, in their order. */
let stills: Element[] = [];
const ids = new Set<string>();

function figureOf(figure: Figure, links: Linked): HTMLElement {
  const note = figure.note ? html("p", { class: "note" }, ...linked(figure.note)) : null;
  // The first of a name has the anchor: a picture and the table of a study may be called alike.
  const id = idOf(figure.name);
  const title = html("figcaption", {}, figure.title, permalink(id, figure.title));
  const says = figure.says ? html("p", { class: "says" }, ...linked(figure.says)) : null;
  const element = html("figure", { id, class: `${figure.kind}${widthOf(figure)}` }, title);
  if (says) element.append(says);
  if (figure.kind === "table") element.append(table(figure));
  else if (figure.kind === "grid") element.append(grid(figure));
  else {
    const chart = chartOf(figure, links);
    if (hasNames(figure)) element.append(legend(figure, chart));
    const data = dataOf(figure);
    const behind = () => [table(data), ...(data.note ? [html("p", { class: "note" }, data.note)] : [])];
    element.append(...switches(figure, chart), chart.element, ...(figure.kind === "lines" ? varying(figure) : []), fold({ class: "data" }, ["data"], behind));
  }
  if (note) element.append(note);
  return element;
}

/** An address of its own for each section, figure and table. */
function idOf(name: string): string {
  const id = ids.has(name) ? `${name}-${ids.size}` : name;
  ids.add(id);
  return id;
}

function permalink(id: string, title: string): HTMLElement {
  return html("a", { class: "permalink", href: `#${id}`, "aria-label": `Link to: ${title || id}` }, "#");
}

/** Whether a legend is needed to distinguish series, or ringed points. */
function hasNames(figure: Lines | Bars | Heat): figure is Lines | Bars {
  if (figure.kind === "heat" || (figure.kind === "bars" && isAlone(figure))) return false;
  return figure.series.length > 1 || figure.series.some((one) => one.mark || one.marks.length);
}

/** Tables with longer rows than a column of the page is wide take two columns of it, or all of its width. */
const CHARACTERS_MAX = 72;

function widthOf(figure: Figure): "" | " wide" | " wide whole" {
  if (figure.kind !== "table" && figure.kind !== "grid") return "";
  const { columns, rows } = dataOf(figure);
  const texts = (n: number) => [columns[n] ?? "", ...rows.map((row) => (typeof row[n] === "number" ? "00,000" : String(row[n] ?? "")))];
  const widths = columns.map((_, n) => 3 + Math.max(...texts(n).map((text) => text.length)));
  const row = widths.reduce((sum, one) => sum + one, 0);
  return row > 2 * CHARACTERS_MAX ? " wide whole" : row > CHARACTERS_MAX ? " wide" : "";
}

function chartOf(figure: Lines | Bars | Heat, links: Linked): Chart {
  const key = figure.kind === "bars" ? "" : `${figure.x.label}${figure.x.log}`;
  const together = () => (key ? (links.get(key) ?? []) : []);
  const chart = new Chart(
    figure.title,
    (width, view) => {
      switch (figure.kind) {
        case "lines":
          return lines(figure, width, view);
        case "bars":
          return bars(figure, width, view);
        case "heat":
          return heat(figure, width, view);
      }
    },
    together,
    stills.shift() ?? null,
  );
  if (key) links.set(key, [...together(), chart]);
  charts.push(chart);
  return chart;
}

/** Buttons that make an axis linear or logarithmic. */
function switches(figure: Lines | Bars | Heat, chart: Chart): HTMLElement[] {
  const axes: [string, Axis][] = figure.kind === "bars" ? [["y", figure.y]] : [["x", figure.x], ["y", figure.y]];
  const buttons = axes.filter(([, axis]) => axis.switch).map(([name, axis]) => {
    const button = html("button", { type: "button", "aria-pressed": String(axis.log), title: `${axis.label}: logarithmic or linear` }, `log ${name}`);
    button.addEventListener("click", () => {
      axis.log = !axis.log;
      button.ariaPressed = String(axis.log);
      chart.zoom(null, null);
    });
    return button;
  });
  return buttons.length ? [html("div", { class: "switches", role: "group", "aria-label": "Logarithmic axes" }, ...buttons)] : [];
}

/** On pages with the simulator: buttons that open the explorer with a curve, and why other curves have none. */
function varying({ taken = [], refused = [] }: Lines): HTMLElement[] {
  const buttons = taken.map((curve) => {
    const button = html("button", { type: "button" }, `vary ${curve.name}`);
    button.addEventListener("click", () => dispatchEvent(new CustomEvent("vary", { detail: curve })));
    return button;
  });
  const offered = buttons.length ? [html("div", { class: "vary", role: "group", "aria-label": "Curves that can be varied" }, ...buttons)] : [];
  return [...offered, ...refused.map((why) => html("p", { class: "note" }, why))];
}

/** The names of series, which show and hide them. */
function legend(figure: Lines | Bars, chart: Chart): HTMLElement {
  const { kind, series } = figure;
  const styles = looks(series);
  // A published series with the name of a simulated one has its mark next to that one's.
  const twinOf = (name: string) => (kind === "lines" ? series.findIndex((one) => one.published && one.name === name) : -1);
  const ours = new Set(series.filter((one) => !one.published).map((one) => one.name));
  const entries = series.map((one, index) => {
    if (kind === "lines" && one.published && ours.has(one.name)) return null;
    const look = styles[index];
    const twin = one.published ? -1 : twinOf(one.name);
    const width = twin < 0 ? 26 : 38;
    const sample = svg("svg", { class: "sample", width, height: 12, "aria-hidden": "true" });
    if (look && kind === "lines") {
      if (!look.published && !one.marks.length) sample.append(svg("path", { class: `${look.colour} line`, d: `M1 6H${width - 1}`, "stroke-dasharray": look.dash }));
      if (look.published && !hasPoints(one)) sample.append(svg("path", { class: `${look.colour} rule-across`, d: `M1 6H${width - 1}` }));
      else if (one.marks.length) sample.append(pointed(look, "full", { x: 13, y: 6 }));
      else sample.append(marked(look, { x: twin < 0 ? 13 : 10, y: 6 }));
      const other = series[twin];
      if (other && hasPoints(other)) sample.append(marked({ ...look, published: true }, { x: 28, y: 6 }));
    } else if (look) {
      sample.append(svg("path", { class: `${look.colour} bar${look.published ? " hatched" : ""}`, d: "M4 1h18v10h-18z" }));
      if (look.published) sample.append(svg("path", { class: "hatch", d: "M4 1h18v10h-18z" }));
    }
    const knee = one.mark && kind === "lines" ? `: knee at ${one.mark_at_most ? "≤ " : ""}${kneeOf(one.mark, figure)}` : "";
    const button = html("button", { type: "button", "aria-pressed": "true" }, sample, nameOf(one), html("span", {}, knee));
    button.addEventListener("click", () => {
      const isShown = button.ariaPressed !== "true";
      button.ariaPressed = String(isShown);
      for (const shown of [index, twin]) if (shown >= 0) chart.toggle(shown, isShown);
    });
    return button;
  });
  const open = kind === "lines" && entries.includes(null) ? html("span", {}, `${publishedMarks(figure)}: as published`) : null;
  return html("div", { class: "legend", role: "group", "aria-label": "Series; click to hide or show" }, ...entries, open, ...keyOf(figure));
}

/** The meaning of the marks of points. */
function keyOf(figure: Lines | Bars): HTMLElement[] {
  if (figure.kind !== "lines") return [];
  return figure.key.map(([mark, says]) => {
    const sample = svg("svg", { class: "sample", width: 14, height: 12, "aria-hidden": "true" });
    sample.append(pointed({ colour: "", dash: "", shape: "circle", published: false }, mark, { x: 7, y: 6 }));
    return html("span", { class: "key" }, sample, says);
  });
}

/** Whether a series has a point with both values, drawn as a mark; one with a single value is a rule. */
function hasPoints({ x, y }: Series): boolean {
  return x.some((at, n) => at !== null && y[n] !== null);
}

/** The style of published series with the name of a simulated one. */
function publishedMarks({ series }: Lines): string {
  const ours = new Set(series.filter((one) => !one.published).map((one) => one.name));
  const twins = series.filter((one) => one.published && ours.has(one.name));
  const hasRules = twins.some(({ x, y }) => x.some((at, n) => at === null || y[n] === null));
  return [twins.some(hasPoints) ? "open marks" : "", hasRules ? "dotted rules" : ""].filter(Boolean).join(" and ");
}

function kneeOf([x, y]: [number, number], figure: Lines): string {
  return `${shown(x, 4)}${unitOf(figure.x)}, ${shown(y, 3)}${unitOf(figure.y)}`;
}

/** The unit of an axis, in parentheses at the end of its label. */
function unitOf(axis: Axis): string {
  const unit = /\(([^()]*)\)$/.exec(axis.label)?.[1];
  return unit ? ` ${unit}` : "";
}

function sectionOf(section: Section, id: string): HTMLElement {
  const links: Linked = new Map();
  const figures = section.figures.map((figure) => figureOf(figure, links));
  const [only, ...others] = figures.filter((figure) => !figure.classList.contains("wide"));
  if (!others.length) only?.classList.add("alone");
  return html(
    "section",
    { id },
    html("h2", {}, section.title, permalink(id, section.title)),
    ...paragraphs(section.text),
    html("div", { class: "figures" }, ...figures),
  );
}

function heading(report: Report): HTMLElement {
  const counts = verdicts(report.claims).map(([verdict, count]) => badge(verdict, count));
  const score = counts.length ? html("a", { class: "score", href: "#claims" }, ...counts) : null;
  const question = report.question ? html("p", { class: "question" }, report.question) : null;
  return html("header", {}, html("h1", {}, report.title), question, html("div", { class: "answer" }, ...paragraphs(report.summary)), score);
}

function contents(entries: [string, string][]): HTMLElement | null {
  if (entries.length < 2) return null;
  return html("nav", { "aria-label": "Contents" }, ...entries.map(([id, title]) => html("a", { href: `#${id}` }, title)));
}

const THEMES = ["light dark", "light", "dark"];
const NAMES = ["theme: system", "theme: light", "theme: dark"];

function themes(): HTMLElement {
  let theme = 0;
  const button = html("button", { type: "button", class: "theme" }, NAMES[0] ?? "");
  button.addEventListener("click", () => {
    theme = (theme + 1) % THEMES.length;
    document.documentElement.style.setProperty("--scheme", THEMES[theme] ?? "");
    button.textContent = NAMES[theme] ?? "";
    redrawn();
  });
  return button;
}

/** Maps are painted, not styled: they follow the theme by being painted again. */
function redrawn(): void {
  for (const chart of charts) chart.redraw();
}

/** On paper: light, with the evidence of every claim that is listed. */
function printing(): void {
  const root = document.documentElement.style;
  let scheme = "";
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details.printed:not([open])")];
    opened.forEach((details) => details.dispatchEvent(new Event("unfold")));
    document.querySelectorAll<HTMLElement>("figure.table > .scroll .more, .claim .more").forEach((more) => more.click());
    scheme = root.getPropertyValue("--scheme");
    root.setProperty("--scheme", "light");
    redrawn();
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => (details.open = false));
    root.setProperty("--scheme", scheme);
    redrawn();
  });
}

function whole({ report, descriptions }: Given): HTMLElement[] {
  const slug = (title: string) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "section";
  const entries = report.sections.map(({ title }): [string, string] => [idOf(`in-${slug(title)}`), title]);
  const body = report.sections.map((section, n) => sectionOf(section, entries[n]?.[0] ?? ""));
  if (report.remarks) {
    entries.push(["how", "Method"]);
    body.push(html("section", { id: "how" }, html("h2", {}, "Method"), ...paragraphs(report.remarks)));
  }
  if (report.claims.length) {
    entries.push(["claims", "Claims"]);
    body.push(html("section", { id: "claims" }, html("h2", {}, "Claims"), claimsOf(report.claims)));
  }
  if (report.sources.length) {
    entries.push(["sources", "Sources"]);
    const list = html("ul", {}, ...report.sources.map((source) => html("li", {}, ...linked(source))));
    body.push(html("section", { id: "sources" }, html("h2", {}, "Sources"), list));
  }
  if (report.runs.length) {
    entries.push(["runs", "Provenance"]);
    body.push(html("section", { id: "runs" }, html("h2", {}, "Provenance"), runsOf(report.runs, descriptions)));
  }
  const footer = html("footer", {}, report.version ? `headstack ${report.version}` : "headstack");
  return [themes(), heading(report), contents(entries), html("main", {}, ...body), footer].filter((part) => part !== null);
}

/** Whether a notebook is dark around the frame: its theme is independent of the system's. */
function isDarkRound(frame: HTMLElement): boolean {
  for (let around: HTMLElement | null = frame; around; around = around.parentElement) {
    const [red = 0, green = 0, blue = 0, alpha = 1] = getComputedStyle(around).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    if (alpha > 0) return 0.3 * red + 0.59 * green + 0.11 * blue < 128;
  }
  return false;
}

function start(): void {
  const given = JSON.parse(document.getElementById("report")?.textContent ?? "") as Given;
  document.body.classList.toggle("inline", given.inline);
  const figures = given.report.sections.flatMap((section) => section.figures);
  const links: Linked = new Map();
  stills = [...document.querySelectorAll("#plain svg.still")];
  const drawn = given.inline ? figures.map((figure) => figureOf(figure, links)) : whole(given);
  document.getElementById("plain")?.remove();
  document.body.append(...drawn);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawn);
  printing();
  const frame = window.frameElement as HTMLElement | null;
  if (frame) document.documentElement.style.setProperty("--scheme", isDarkRound(frame) ? "dark" : "light");
  // In a notebook the frame of a figure fits its content.
  if (frame && given.inline) new ResizeObserver(() => (frame.style.height = `${document.documentElement.offsetHeight}px`)).observe(document.body);
}

start();
