/** Tables that sort, and grids that are coloured by their figures. */

import { html, svg } from "./dom";
import type { Cell, Grid, Table } from "./report";
import { alike, extent, figure } from "./scale";

/** Number of rows shown at first; all rows are shown on request, or in print. */
const ROWS_MAX = 40;

export function table(given: Table): HTMLElement {
  const texts = given.columns.map((_, column) => textOf(given.rows.map((row) => row[column] ?? null)));
  const body = html("tbody");
  let rows: readonly (readonly Cell[])[] = given.rows;
  const written = new Map(given.rows.map((row, n) => [row as readonly Cell[], given.texts[n]]));
  let all = rows.length <= ROWS_MAX;
  const fill = () => {
    const shown = all ? rows : rows.slice(0, ROWS_MAX);
    const cells = (row: readonly Cell[]) => given.columns.map((_, n) => td(row[n] ?? null, texts[n] ?? null, n, written.get(row)?.[n]));
    body.replaceChildren(...shown.map((row) => html("tr", {}, ...cells(row))));
  };
  const heads = given.columns.map((name, column) => {
    const head = html("th", { scope: "col", class: texts[column] ? "figure" : "" });
    const sort = () => {
      const direction = head.ariaSort === "ascending" ? -1 : 1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = direction > 0 ? "ascending" : "descending";
      rows = sorted(given.rows, column, direction);
      fill();
    };
    head.append(html("button", { type: "button", click: sort }, name));
    return head;
  });
  fill();
  const caption = html("caption", { class: "unseen" }, given.title || "data");
  const element = html("table", { style: `--columns: ${given.columns.length}` }, caption, html("thead", {}, html("tr", {}, ...heads)), body);
  const more = html("button", { type: "button", class: "more" }, `all ${given.rows.length} rows`);
  more.addEventListener("click", () => {
    all = true;
    fill();
    more.remove();
  });
  return html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": given.title || "data" }, element, all ? null : more);
}

/** Sorts rows by a column: numbers by size, text alphabetically with embedded numbers by size, missing values last. */
export function sorted(rows: readonly (readonly Cell[])[], column: number, direction: number): (readonly Cell[])[] {
  const words = new Intl.Collator("en", { numeric: true });
  return [...rows].sort((one, other) => {
    const [a, b] = [one[column] ?? null, other[column] ?? null];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    const order = typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));
    return direction * order;
  });
}

type Text = (value: number) => string;

/** How the numbers of a column are written, if it is one of numbers. Years and seeds have no comma in them. */
function textOf(cells: readonly Cell[]): Text | null {
  const known = cells.filter((value) => value !== null);
  const numbers = known.filter((value) => typeof value === "number");
  if (!known.length || numbers.length < known.length) return null;
  if (numbers.every((value) => Number.isInteger(value) && Math.abs(value) < 10_000)) return (value) => String(value).replace("-", "\u2212");
  return alike(numbers, 5, 0.003);
}

/** The header cell of a row. */
function td(value: Cell, text: Text | null, column: number, written = ""): HTMLElement {
  if (typeof value === "string" && BLOCKS.test(value)) return html("td", { class: "spark" }, spark(value));
  const content = said(value, written ? () => written : (text ?? figure));
  if (column === 0 && !text && value !== null) return html("th", { scope: "row" }, content);
  const isFigure = text !== null || (typeof value === "string" && BETWEEN.test(value));
  const isProse = typeof value === "string" && value.length > PROSE;
  return html("td", { class: isFigure ? "figure" : isProse ? "prose" : "" }, content);
}

/** Longer than this, words are sentences, which want a width. */
const PROSE = 50;

/** A sparkline as text, in eighths of its height; a missing value is a dot. */
const BLOCKS = /^[\u2581-\u2588\u00b7]+$/;
const STEP = { x: 5, y: 2.5 };

/** The same, drawn: every font has blocks of its own. */
function spark(text: string): SVGSVGElement {
  const bars = [...text].map((block, n) => {
    const height = STEP.y * (block === "\u00b7" ? 0 : block.charCodeAt(0) - 0x2580);
    return svg("rect", { x: STEP.x * n, y: 8 * STEP.y - height, width: STEP.x - 1, height });
  });
  const width = STEP.x * text.length;
  const rule = svg("path", { class: "rule", d: `M0 ${8 * STEP.y + 0.5}H${width}` });
  return svg("svg", { width, height: 8 * STEP.y + 1, role: "img", "aria-label": text }, ...bars, rule);
}

/** An interval as text, such as "0.93 ± 0.01" and "148 to 185.1", which is formatted like a number. */
const BETWEEN = /^[\d.,\u2212-]+ (±|to) [\d.,\u2212-]+$/;

/** A rounded value, with the exact one as an attribute. */
function said(value: Cell, text: Text): Node | string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : html("data", { value: String(value) }, text(value));
}

export function grid(given: Grid): HTMLElement {
  const values = given.values.flat().filter((value) => value !== null);
  const [low, high] = values.length ? extent(values) : [0, 1];
  const published = given.published.flat().filter((value) => value !== null);
  const texts = { found: alike(values, 4, Infinity), published: alike(published, 5, Infinity) };
  const head = html("tr", {}, html("th", { scope: "col", class: "corner" }, `${given.row_label} \\ ${given.column_label}`));
  head.append(...given.columns.map((name) => html("th", { scope: "col", class: "figure" }, name)));
  const rows = given.rows.map((name, row) =>
    html("tr", {}, html("th", { scope: "row" }, name), ...given.columns.map((_, column) => shaded(given, row, column, [low, high], texts))),
  );
  const unit = html("div", { class: "unit" }, given.unit + (given.published.length ? "; below, as published" : ""));
  const style = `--columns: ${given.columns.length + 1}`;
  const drawn = html("table", { class: "grid", style }, html("caption", { class: "unseen" }, given.title), html("thead", {}, head), html("tbody", {}, ...rows));
  return html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": given.title }, unit, drawn);
}

function shaded(given: Grid, row: number, column: number, [low, high]: [number, number], texts: { found: Text; published: Text }): HTMLElement {
  const value = given.values[row]?.[column] ?? null;
  const cell = html("td", { class: "figure" }, said(value, texts.found));
  const published = given.published[row]?.[column] ?? null;
  if (published !== null) cell.append(html("div", { class: "published" }, said(published, texts.published)));
  if (value === null) return cell;
  const { share, side } = shade(value, low, high, given.signed);
  cell.classList.add(side);
  cell.style.setProperty("--share", `${Math.round(60 * share)}%`);
  return cell;
}

/** The shade of a cell, from 0 to 1, and its sign for signed figures. */
export function shade(value: number, low: number, high: number, signed: boolean): { share: number; side: "above" | "below" } {
  if (!signed) return { share: high > low ? (value - low) / (high - low) : 0, side: "above" };
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return { share: Math.abs(value) / most, side: value < 0 ? "below" : "above" };
}
