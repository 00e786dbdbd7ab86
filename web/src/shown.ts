/** The views of curves: charts, the result in words, utilization of the parts, and prices. */

import type { Curve } from "./answers";
import type { Drawing, View } from "./chart";
import { html } from "./dom";
import type { Stated, Told } from "./engine";
import { lines } from "./lines";
import type { Axis, Lines, Series } from "./report";
import { priceOf, type Prices } from "./prices";
import { figure as shown, timeUnit, withError } from "./scale";
import { loads, loadsOf, nameOf, type Entry, type Load, type Shown, type State } from "./state";

type Row = Record<string, number | string | boolean | null>;

const COLOURS = ["blue", "red", "green", "purple", "yellow", "cyan"];
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down"] as const;

/**
 * Returns the style of an entry's curve: the colour depends on the system, and the dash pattern distinguishes its
 * variants.
 */
export function lookOf({ entries }: State, n: number): { colour: string; shape: Series["shape"]; dash: number } {
  const systems = [...new Set(entries.map((entry) => entry.system))];
  const at = systems.indexOf(entries[n]?.system ?? "");
  const dash = entries.slice(0, n).filter((entry) => entry.system === entries[n]?.system).length;
  return { colour: COLOURS[at % COLOURS.length] ?? "blue", shape: SHAPES[at % SHAPES.length] ?? "circle", dash: dash % 4 };
}

/** Returns the index of the load that is nearest by ratio. */
export function nearestLoad(all: number[], to: number): number {
  const apart = all.map((load) => Math.abs(Math.log(load / to)));
  return apart.indexOf(Math.min(...apart));
}

function rowOf(told: Told | undefined): Row | null {
  return told && "done" in told ? told.done.row : null;
}

/** Returns the rows of a curve in order of load; points without a row are omitted. */
function rows(state: State, curve: Curve | null): { load: number; row: Row }[] {
  return (curve ? loadsOf(curve.load, state) : []).flatMap((load) => {
    const row = rowOf(curve?.told.get(load)?.is);
    return row ? [{ load, row }] : [];
  });
}

/** Returns the result at the selected load. */
function looked(state: State, curve: Curve | null): Told | undefined {
  const all = curve ? loadsOf(curve.load, state) : [];
  return curve?.told.get(all[nearestLoad(all, state.at)] ?? 0)?.is;
}

function number(value: Row[string] | undefined): number | null {
  return typeof value === "number" ? value : null;
}

/** Returns a latency of a row with its interval, in ms. */
function response(row: Row, shows: Shown): [number | null, number | null, number | null] {
  return [number(row[`${shows}_ms`]), number(row[`${shows}_low_ms`]), number(row[`${shows}_high_ms`])];
}

const EMPTY = { mark: null, mark_at_most: false, published: false, marks: [], names: [], low: [], high: [], low_x: [], high_x: [], p99: [] };

type Unswitched = Omit<Axis, "switch">;

function figureOf(title: string, x: Unswitched, y: Unswitched, series: Series[]): Lines {
  const axes = { x: { ...x, switch: false }, y: { ...y, switch: false } };
  return { kind: "lines", name: title, title, ...axes, series, says: "", note: "", x_is_percentile: false, limits: [], key: [] };
}

function named(state: State, n: number): string {
  const entry = state.entries[n];
  return entry ? [nameOf(entry), ...(entry.pinned ? [] : [entry.demand || "one size"])].join(", ") : "";
}

interface Place {
  x: number | null;
  y: number | null;
  label: string;
  low: number | null;
  high: number | null;
  p99?: number | null;
}

function series(state: State, curves: (Curve | null)[], of: (row: Row, load: number) => Place): Series[] {
  return state.entries.map((_, n) => {
    const told = rows(state, curves[n] ?? null).map(({ load, row }) => of(row, load));
    return {
      ...EMPTY,
      ...lookOf(state, n),
      name: named(state, n),
      x: told.map(({ x }) => x),
      y: told.map(({ y }) => y),
      labels: told.map(({ label }) => label),
      low: told.map(({ low }) => low),
      high: told.map(({ high }) => high),
      p99: told.map(({ p99 = null }) => p99),
    };
  });
}

const SPREAD = 10;

/**
 * Whether the values span more than a decade, so that the axis is logarithmic: next to an HDD, an SSD would be
 * invisible.
 */
function isWide(values: (number | null)[]): boolean {
  const known = values.filter((value): value is number => value !== null && value > 0);
  return known.length > 1 && Math.max(...known) > SPREAD * Math.min(...known);
}

function spread(all: Series[]): { x: boolean; y: boolean } {
  return { x: isWide(all.flatMap(({ x }) => x)), y: isWide(all.flatMap(({ y, p99 }) => [...y, ...p99])) };
}

const NAMES: Record<Shown, string> = { mean: "mean latency", p50: "median latency", p90: "90th percentile", p99: "99th percentile", p999: "99.9th percentile" };

export function saturation(state: State, curves: (Curve | null)[], dropped: Series[], width: number, view: View): Drawing {
  const all = series(state, curves, (row, load) => {
    const [y, low, high] = response(row, state.shows);
    const label = row.depth === null && row.rate_per_s === null ? "" : String(load);
    return { x: number(row.iops), y, low, high, label, p99: state.shows === "mean" ? number(row.p99_ms) : null };
  });
  const both = [...all, ...dropped];
  const { x, y } = spread(both);
  return lines(figureOf("Latency over throughput", { label: "IOPS", log: x }, { label: `${NAMES[state.shows]}${state.shows === "mean" ? ", thin: 99th percentile" : ""} (ms)`, log: y }, both), width, view);
}

export function throughput(state: State, curves: (Curve | null)[], width: number, view: View): Drawing {
  // Omit curves whose load is of another kind.
  const isOffered = (row: Row) => (state.load === "depth" ? row.depth !== null : row.rate_per_s !== null);
  const all = series(state, curves, (row, load) => ({ x: isOffered(row) ? load : null, y: number(row.iops), label: "", low: null, high: null }));
  const label = state.load === "depth" ? "queue depth, or clients" : "offered requests/s";
  return lines(figureOf("Throughput over load", { label, log: true }, { label: "IOPS", log: spread(all).y }, all), width, view);
}

const PERCENTILES: [percent: number, name: string][] = [[50, "p50"], [90, "p90"], [95, "p95"], [99, "p99"], [99.9, "p999"]];

export function tail(state: State, curves: (Curve | null)[], width: number, view: View): Drawing {
  const all = state.entries.map((_, n): Series => {
    const row = rowOf(looked(state, curves[n] ?? null));
    const of = (end: string) => PERCENTILES.map(([, name]) => (row ? number(row[`${name}${end}_ms`]) : null));
    const x = PERCENTILES.map(([percent]) => percent);
    return { ...EMPTY, ...lookOf(state, n), name: named(state, n), x, y: of(""), low: of("_low"), high: of("_high"), labels: x.map(() => "") };
  });
  const figure = figureOf("Latency at one load", { label: "percentile", log: false }, { label: "latency (ms)", log: spread(all).y }, all);
  return lines({ ...figure, x_is_percentile: true }, width, view);
}

function ms(value: number | null, half: number | null = null): string {
  if (value === null) return "unknown";
  const { unit, times } = timeUnit(value);
  return `${half ? withError(times * value, times * half) : shown(times * value, 3)} ${unit}`;
}

function under(load: Load, row: Row): string {
  switch (load) {
    case "depth":
    case "asap":
      return `at queue depth ${row.depth}`;
    case "clients":
      return `with ${row.depth} clients`;
    case "rate":
      return `offered ${shown(number(row.rate_per_s) ?? 0, 4)} requests/s`;
    case "fixed":
      return "under this scenario";
    case "timed":
      return "with arrivals as recorded";
  }
}

/** Describes the result at the selected load in a sentence. */
export function said(entry: Entry, state: State, curve: Curve | null): string {
  if (curve?.refused) return `${entry.system}: ${curve.refused}`;
  const told = looked(state, curve);
  if (!told) return `${entry.system} is being simulated.`;
  if ("impossible" in told) return `${entry.system}: not possible: ${told.impossible}`;
  if ("failed" in told) return `${entry.system}: the simulator failed: ${told.failed}`;
  const { row } = told.done;
  const half = number(row.half_width_ms);
  const at = under(curve?.load ?? state.load, row);
  const mean = ms(number(row.mean_ms), half);
  const failed = row.errors ? ` ${String(row.errors)} requests failed.` : "";
  const lost = row.data_loss ?? row.ended_early;
  const ended = lost ? ` It ended early: ${String(lost)}.` : "";
  const why = half === null && row.sampling ? ` No confidence interval of the mean: ${String(row.sampling)}.` : "";
  const saturated = row.saturated ? " It cannot keep up." : "";
  return (
    `${entry.system} ${at}: ${shown(number(row.iops) ?? 0, 4)} IOPS, ${shown(number(row.mb_per_s) ?? 0, 3)} MB/s; ` +
    `mean ${mean}, 99th percentile ${ms(number(row.p99_ms))}. Busiest: ${String(row.bottleneck)}, ${shown(number(row.utilization_percent) ?? 0, 3)} % of the time.${saturated}${failed}${ended}${why}`
  );
}

/** Shows the utilization of each part; for the drives of an array, the mean and the busiest. */
export function busy(state: State, curve: Curve | null): HTMLElement {
  const told = looked(state, curve);
  const parts = new Map<string, number[]>();
  for (const [name, share] of told && "done" in told ? told.done.components : []) {
    const part = name.replace(/^\D+\d+ /, "each drive's ");
    parts.set(part, [...(parts.get(part) ?? []), share]);
  }
  const listed = [...parts].map(([name, shares]) => {
    const most = 100 * Math.max(...shares);
    const mean = (100 * shares.reduce((sum, share) => sum + share, 0)) / shares.length;
    const text = shares.length > 1 ? `${shown(mean, 3)} %, the busiest ${shown(most, 3)} %` : `${shown(most, 3)} %`;
    const bar = html("meter", { min: 0, max: 100, value: mean, "aria-hidden": "true" });
    return html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, bar), html("td", { class: "figure" }, text));
  });
  return html("section", {}, html("h2", {}, "Utilization of the parts"), html("table", {}, html("tbody", {}, ...listed)));
}

/** Shows the figures of all systems at the selected load, with prices if known. */
export function cost(state: State, curves: (Curve | null)[], prices: Prices, stated: (system: string) => Stated | null): HTMLElement {
  const hasPrices = Object.keys(prices).length > 0;
  const heads = ["system", "IOPS", "MB/s", "mean", "p50", "p99", "p99.9", "utilization", ...(hasPrices ? ["price, $", "$ per IOPS"] : [])];
  const body = state.entries.map((entry, n) => {
    const row = rowOf(looked(state, curves[n] ?? null));
    const system = stated(entry.system);
    const { usd, missing } = hasPrices && system ? priceOf(entry, system, prices) : { usd: null, missing: "" };
    const iops = row ? number(row.iops) : null;
    const of = (value: number | null, digits: number, unit = "") => (value === null ? "" : `${shown(value, digits)}${unit}`);
    const times = ["mean_ms", "p50_ms", "p99_ms", "p999_ms"].map((name) => (row ? ms(number(row[name])) : ""));
    const figures = [of(iops, 4), of(row ? number(row.mb_per_s) : null, 3), ...times, of(row ? number(row.utilization_percent) : null, 3, " %")];
    const priced = hasPrices ? [usd === null ? missing : of(usd, 4), usd !== null && iops ? of(usd / iops, 3) : ""] : [];
    return html("tr", {}, html("th", { scope: "row" }, named(state, n)), ...[...figures, ...priced].map((text) => html("td", { class: "figure" }, text)));
  });
  const head = html("tr", {}, ...heads.map((text, n) => html("th", { scope: "col", class: n ? "figure" : "" }, text)));
  const table = html("table", {}, html("thead", {}, head), html("tbody", {}, ...body));
  const at = loads(state)[nearestLoad(loads(state), state.at)] ?? state.at;
  const heading = state.load === "depth" ? `At queue depth ${at}` : `At ${at} requests/s`;
  return html("section", {}, html("h2", {}, heading), html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures" }, table));
}
