/** Grouped bars; published values are hatched. */

import { canvas, heightOf, within, yAxis, yTicks } from "./axes";
import type { Drawing, Spot, View } from "./chart";
import { svg } from "./dom";
import { short, type Box } from "./geometry";
import { looks, nameOf } from "./looks";
import type { Bars } from "./report";
import { extent, figure as shown, padded, scale, type Scale } from "./scale";

const CHARACTER = 6.3;
/** Left extent of a slanted name. */
const ASLANT = 0.83;
/** Maximum length of slanted group names, in characters. */
const NAME_MAX = 34;

export function bars(figure: Bars, width: number, view: View): Drawing {
  const names = figure.groups.map((name) => (name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name));
  const widest = CHARACTER * Math.max(1, ...names.map((name) => name.length));
  const isAslant = widest > ((width - 60) / figure.groups.length) * 0.96;
  const below = isAslant ? Math.ceil(0.5 * widest) + 26 : 26;
  const height = heightOf(width) + (isAslant ? below - 26 : 0);
  const shownSeries = figure.series.flatMap((series, index) => (view.hidden.has(index) ? [] : [{ series, index }]));
  const values = shownSeries.flatMap(({ series }) => [...series.y, ...series.low, ...series.high]);
  const sums = figure.stacked ? figure.groups.map((_, n) => shownSeries.reduce((sum, { series }) => sum + (series.y[n] ?? 0), 0)) : [];
  const y = scaleOf(figure, [...sums, ...values].filter((value) => value !== null));
  const ticks = yTicks(y, height - below + 42);
  const box = within(width, height, ticks.map(y.text), below);
  if (isAslant) box.left = Math.max(box.left, leftOf(names, box.right));
  const element = canvas(width, height, figure.title);
  element.append(yAxis(box, y, ticks, figure.y.label), hatches());
  const spots: (Spot | null)[][] = figure.series.map(() => []);
  const styles = looks(figure.series);
  const groupWidth = (box.right - box.left) / figure.groups.length;
  const isOne = figure.stacked || isAlone(figure);
  const beside = isOne ? 1 : shownSeries.length;
  const barWidth = Math.min(56, (0.82 * groupWidth) / Math.max(1, beside));
  const tops = figure.groups.map(() => 0);
  shownSeries.forEach(({ series, index }, place) => {
    const look = styles[index];
    figure.groups.forEach((group, n) => {
      const value = series.y[n] ?? null;
      const left = box.left + (n + 0.5) * groupWidth + ((isOne ? 0 : place) - beside / 2) * barWidth;
      const below = figure.stacked ? (tops[n] ?? 0) : 0;
      tops[n] = below + (value ?? 0);
      const spot = value === null || !look ? null : bar(box, y, left, barWidth, below + value, below);
      if (spot && look) {
        element.append(svg("path", { class: `${look.colour} bar${look.published ? " hatched" : ""}`, d: spot.d }));
        if (look.published) element.append(svg("path", { class: "hatch", d: spot.d }));
        const [low, high] = [series.low[n] ?? null, series.high[n] ?? null].map((end) => end === null ? null : bar(box, y, left, barWidth, end));
        if (low && high) element.append(svg("path", { class: "whisker", d: `M${short(low.at.x)} ${short(low.at.y)}V${short(high.at.y)}` }));
      }
      const ends = [series.low[n] ?? null, series.high[n] ?? null].filter((end) => end !== null).map((end) => shown(end));
      const text = () => [
        nameOf(series),
        group,
        `${figure.y.label}: ${value === null ? "" : shown(value, 6)}`,
        ...(ends.length === 2 ? [`from ${ends.join(" to ")}`] : []),
      ];
      spots[index]?.push(spot && { at: spot.at, text });
    });
  });
  names.forEach((name, n) => element.append(groupName(name, box, box.left + (n + 0.5) * groupWidth, isAslant)));
  return { element, box, x: null, y: null, spots };
}

/** Whether each group has a bar of only one series, whose name it bears. */
export function isAlone(figure: Bars): boolean {
  return figure.groups.every((_, n) => figure.series.filter((one) => one.y[n] !== null).length <= 1);
}

/** The start of the axes such that slanted names begin within the chart. */
function leftOf(names: readonly string[], right: number): number {
  const needed = names.map((name, n) => {
    const along = (n + 0.5) / names.length;
    return (ASLANT * CHARACTER * name.length - along * right) / (1 - along);
  });
  // Letters are a little wider in some fonts.
  return Math.min(0.35 * right, Math.ceil(1.08 * Math.max(...needed)) + 4);
}

/** From 0, so that lengths compare; a logarithmic axis from the decade below the least. */
function scaleOf(figure: Bars, values: number[]): Scale {
  const kind = figure.y.log ? "log" : "linear";
  if (kind === "log") {
    const [low, high] = padded(kind, values);
    return scale(kind, 10 ** Math.floor(Math.log10(low)), high);
  }
  const [low, high] = extent([0, ...values]);
  return scale(kind, 1.06 * low, low === high ? 1 : 1.06 * high);
}

function bar(box: Box, y: Scale, left: number, width: number, value: number, from = 0): { d: string; at: { x: number; y: number } } | null {
  const up = (of: number) => box.bottom - Math.max(0, y.at(of)) * (box.bottom - box.top);
  const isLog = y.low > 0;
  if (isLog && value <= 0) return null;
  const [base, top] = [isLog ? box.bottom : up(from), up(value)];
  const inset = width > 5 ? 1 : 0.3;
  const d = `M${short(left + inset)} ${short(base)}V${short(top)}h${short(width - 2 * inset)}V${short(base)}z`;
  return { d, at: { x: left + width / 2, y: top } };
}

function hatches(): SVGElement {
  const line = svg("path", { class: "hatch-line", d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5" });
  return svg("defs", {}, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" }, line));
}

function groupName(name: string, box: Box, at: number, isAslant: boolean): SVGElement {
  const [x, y] = [short(at), box.bottom + 16];
  const place = isAslant
    ? { x, y: y - 2, "text-anchor": "end", transform: `rotate(-35 ${x} ${y - 2})` }
    : { x, y, "text-anchor": "middle" };
  return svg("text", { ...place, class: "group" }, name);
}
