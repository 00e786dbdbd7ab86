/** Figures over another, in the order in which they are given: a saturation curve may bend back. */

import { canvas, clipped, heightOf, within, xAxis, yAxis, yTicks } from "./axes";
import type { Drawing, Range, Spot, View } from "./chart";
import { svg } from "./dom";
import { along, labelled, path, short, type Box, type Point } from "./geometry";
import { looks, marked, nameOf, type Look } from "./looks";
import type { Lines, Series } from "./report";
import { figure as shown, ninesEnd, padded, scale, type Kind, type Scale } from "./scale";

/** Beyond so many points, marks would be a smear. */
const MARKS_MAX = 80;

export function lines(figure: Lines, width: number, view: View): Drawing {
  const height = heightOf(width);
  const kinds: [Kind, Kind] = [figure.x_is_percentile ? "nines" : figure.x.log ? "log" : "linear", figure.y.log ? "log" : "linear"];
  const visible = figure.series.filter((_, index) => !view.hidden.has(index));
  const x = scale(kinds[0], ...(view.x ?? padded(kinds[0], visible.flatMap(xs))), ninesEnd(figure.series.flatMap(xs)));
  const y = scale(kinds[1], ...(view.y ?? padded(kinds[1], visible.flatMap((one) => ys(one, view.x)))));
  const ticks = yTicks(y, height);
  const box = within(width, height, ticks.map(y.text));
  const element = canvas(width, height, figure.title);
  const put = placing(box, x, y, kinds);
  const all = figure.series.map((one, index) => (view.hidden.has(index) ? [] : one.x.map((at, n) => put(at, one.y[n] ?? null))));
  const styles = looks(figure.series);
  const inside = figure.series.flatMap((one, index) => {
    const look = styles[index];
    return look && !view.hidden.has(index) ? drawn(one, all[index] ?? [], look, put) : [];
  });
  element.append(xAxis(box, x, figure.x.label), yAxis(box, y, ticks, figure.y.label), clipped(box, ...inside), labels(figure, all, styles, box));
  return { element, box, x, y, spots: figure.series.map((one, index) => spots(figure, one, all[index] ?? [], box)) };
}

type Put = (x: number, y: number | null) => Point | null;

function placing(box: Box, x: Scale, y: Scale, [xKind, yKind]: [Kind, Kind]): Put {
  const isPlace = (value: number | null, kind: Kind): value is number => value !== null && (kind !== "log" || value > 0);
  return (atX, atY) =>
    isPlace(atX, xKind) && isPlace(atY, yKind)
      ? { x: box.left + x.at(atX) * (box.right - box.left), y: box.bottom - y.at(atY) * (box.bottom - box.top) }
      : null;
}

function xs(series: Series): number[] {
  return [...series.x, ...(series.mark ? [series.mark[0]] : [])];
}

/** What the y axis has to hold: of the part of x that is shown. */
function ys(series: Series, part: Range | null): number[] {
  const isShown = (at: number | undefined) => part === null || (at !== undefined && at >= part[0] && at <= part[1]);
  const pick = (values: (number | null)[]) => values.filter((value, n): value is number => value !== null && isShown(series.x[n]));
  return [...pick(series.y), ...pick(series.low), ...pick(series.high)];
}

function drawn(series: Series, points: (Point | null)[], look: Look, put: Put): SVGElement[] {
  const parts: SVGElement[] = [];
  if (series.low.length && series.high.length) parts.push(interval(series, look, put));
  if (!look.published) {
    parts.push(svg("path", { class: `${look.colour} line`, d: path(points), "stroke-dasharray": look.dash }));
  }
  if (look.published || points.length <= MARKS_MAX) {
    parts.push(...points.filter((point) => point !== null).map((point) => marked(look, point)));
  }
  const knee = series.mark && put(...series.mark);
  if (knee) parts.push(svg("circle", { class: `${look.colour} knee`, cx: short(knee.x), cy: short(knee.y), r: 9 }));
  return parts;
}

/** The interval round a line as a band; round published points as bars. */
function interval(series: Series, look: Look, put: Put): SVGElement {
  const ends = (values: (number | null)[]) => series.x.map((at, n) => put(at, values[n] ?? null));
  const [low, high] = [ends(series.low), ends(series.high)];
  if (!look.published) {
    const round = [...high, ...low.reverse()].filter((point) => point !== null);
    return svg("path", { class: `${look.colour} band`, d: `${path(round)}z` });
  }
  const bars = low.map((bottom, n) => {
    const top = high[n];
    return bottom && top ? `M${short(top.x)} ${short(top.y)}V${short(bottom.y)}` : "";
  });
  return svg("path", { class: `${look.colour} line`, d: bars.join("") });
}

function labels(figure: Lines, all: (Point | null)[][], styles: Look[], box: Box): SVGElement {
  const ink = all.flatMap((points) => along(points));
  const wanted = figure.series.flatMap((one, index) =>
    (all[index] ?? []).flatMap((at, n) => (at && one.labels[n] ? [{ at, text: one.labels[n], colour: styles[index]?.colour ?? "" }] : [])),
  );
  const group = svg("g", { class: "labels" });
  labelled(wanted, ink, { ...box, top: box.top - 10, right: box.right + 12 }).forEach((label, n) => {
    if (!label) return;
    const at = { x: short(label.at.x), y: short(label.at.y), "text-anchor": label.end };
    group.append(svg("text", { ...at, class: wanted[n]?.colour ?? "" }, label.text));
  });
  return group;
}

function spots(figure: Lines, series: Series, points: (Point | null)[], box: Box): (Spot | null)[] {
  return points.map((at, n) => {
    if (!at || at.x < box.left - 1 || at.x > box.right + 1 || at.y < box.top - 1 || at.y > box.bottom + 1) return null;
    return { at, text: () => [nameOf(series), ...said(figure, series, n)] };
  });
}

function said(figure: Lines, series: Series, n: number): string[] {
  const end = (values: (number | null)[]) => values[n] ?? null;
  const [low, high] = [end(series.low), end(series.high)];
  const parts = [`${figure.x.label}: ${shown(series.x[n] ?? 0, figure.x_is_percentile ? 8 : 6)}`, `${figure.y.label}: ${shown(series.y[n] ?? 0, 6)}`];
  if (low !== null && high !== null) parts.push(`from ${shown(low)} to ${shown(high)}`);
  if (series.labels[n]) parts.push(`at ${series.labels[n]}`);
  if (series.mark && series.mark[0] === series.x[n] && series.mark[1] === series.y[n]) parts.push(series.mark_at_most ? "knee, here or before" : "knee");
  return parts;
}
