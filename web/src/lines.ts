/** Lines through points in the given order: a saturation curve may bend back. */

import { canvas, clipped, heightOf, within, xAxis, yAxis, yTicks } from "./axes";
import type { Drawing, Range, Spot, View } from "./chart";
import { svg } from "./dom";
import { along, labelled, path, short, type Box, type Point } from "./geometry";
import { looks, marked, nameOf, pointed, type Look } from "./looks";
import type { Lines, Series } from "./report";
import { figure as shown, ninesEnd, padded, scale, type Kind, type Scale } from "./scale";

/** Number of points above which marks would overlap. */
const MARKS_MAX = 80;
/** Number of points above which unlabelled ones are small. */
const POINTS_MAX = 200;
const SMALL = 2.4;

export function lines(figure: Lines, width: number, view: View): Drawing {
  const height = heightOf(width);
  const kinds: [Kind, Kind] = [figure.x_is_percentile ? "nines" : figure.x.log ? "log" : "linear", figure.y.log ? "log" : "linear"];
  const visible = figure.series.filter((_, index) => !view.hidden.has(index));
  const limits = figure.limits.map((limit) => limit.value);
  const x = scale(kinds[0], ...(view.x ?? padded(kinds[0], visible.flatMap(xs))), ninesEnd(figure.series.flatMap(xs)));
  const y = scale(kinds[1], ...(view.y ?? padded(kinds[1], [...visible.flatMap((one) => ys(one, view.x)), ...limits])));
  const ticks = yTicks(y, height);
  const box = within(width, height, ticks.map(y.text));
  const element = canvas(width, height, figure.title);
  const put = placing(box, x, y, kinds);
  const all = figure.series.map((one, index) => (view.hidden.has(index) ? [] : one.x.map((at, n) => put(at, one.y[n] ?? null))));
  const tails = figure.series.map((one, index) => (view.hidden.has(index) ? [] : one.p99.map((at, n) => put(one.x[n] ?? null, at))));
  const rules = figure.series.flatMap((one, index) => (view.hidden.has(index) ? [] : rulesOf(one, index, box, x, y)));
  const styles = looks(figure.series);
  const isCrowd = figure.series.reduce((sum, one) => sum + one.marks.length, 0) > POINTS_MAX;
  const parts = figure.series.map((one, index) => {
    const look = styles[index];
    if (!look || view.hidden.has(index)) return [];
    return one.marks.length ? scattered(one, all[index] ?? [], look, put, isCrowd) : drawn(one, all[index] ?? [], tails[index] ?? [], look, put);
  });
  // Of points, the first series is the nearest to the reader.
  const inside = (isCrowd ? parts.reverse() : parts).flat();
  inside.unshift(...rules.map(({ from, to, series }) => svg("path", { class: `${styles[series]?.colour} rule-across`, d: path([from, to]) })));
  inside.push(...figure.limits.map(({ value }) => svg("path", { class: "limit", d: `M${box.left} ${heightAt(box, y, value)}H${box.right}` })));
  element.append(xAxis(box, x, figure.x.label), yAxis(box, y, ticks, figure.y.label));
  element.append(clipped(box, ...inside), labels(figure, all, tails, styles, box, rules), limitLabels(figure, box, y));
  return { element, box, x, y, spots: figure.series.map((one, index) => spots(figure, one, index, all[index] ?? [], box, rules)) };
}

type Put = (x: number | null, y: number | null) => Point | null;

/** A published value of only one axis: a line across the figure. */
interface Rule {
  series: number;
  n: number;
  from: Point;
  to: Point;
}

function rulesOf(series: Series, index: number, box: Box, x: Scale, y: Scale): Rule[] {
  if (!series.published) return [];
  return series.x.flatMap((atX, n) => {
    const atY = series.y[n] ?? null;
    if ((atX === null) === (atY === null)) return [];
    const [across, up] = [atX === null ? 0 : x.at(atX), atY === null ? 0 : y.at(atY)];
    if (!(across >= 0 && across <= 1 && up >= 0 && up <= 1)) return [];
    const [left, top] = [box.left + across * (box.right - box.left), box.bottom - up * (box.bottom - box.top)];
    const [from, to] = atX === null ? [{ x: box.left, y: top }, { x: box.right, y: top }] : [{ x: left, y: box.bottom }, { x: left, y: box.top }];
    return [{ series: index, n, from, to }];
  });
}

function heightAt(box: Box, y: Scale, value: number): number {
  return short(box.bottom - y.at(value) * (box.bottom - box.top));
}

/** Labels above their rules, at the right; invisible rules have none. */
function limitLabels(figure: Lines, box: Box, y: Scale): SVGElement {
  const seen = figure.limits.filter(({ value }) => y.at(value) >= 0 && y.at(value) <= 1);
  const place = (value: number) => ({ x: box.right - 2, y: heightAt(box, y, value) - 4, "text-anchor": "end" });
  return svg("g", { class: "labels" }, ...seen.map(({ value, label }) => svg("text", place(value), label)));
}

function placing(box: Box, x: Scale, y: Scale, [xKind, yKind]: [Kind, Kind]): Put {
  const isPlace = (value: number | null, kind: Kind): value is number => value !== null && (kind !== "log" || value > 0);
  return (atX, atY) =>
    isPlace(atX, xKind) && isPlace(atY, yKind)
      ? { x: box.left + x.at(atX) * (box.right - box.left), y: box.bottom - y.at(atY) * (box.bottom - box.top) }
      : null;
}

function xs(series: Series): number[] {
  const known = [...series.x, ...series.low_x, ...series.high_x].filter((value) => value !== null);
  return [...known, ...(series.mark ? [series.mark[0]] : [])];
}

/** The range of the y axis for the visible part of x. */
function ys(series: Series, part: Range | null): number[] {
  const isShown = (at: number | null | undefined) => part === null || at === null || (at !== undefined && at >= part[0] && at <= part[1]);
  const pick = (values: (number | null)[]) => values.filter((value, n): value is number => value !== null && isShown(series.x[n]));
  return [...pick(series.y), ...pick(series.low), ...pick(series.high), ...pick(series.p99)];
}

function drawn(series: Series, points: (Point | null)[], tail: (Point | null)[], look: Look, put: Put): SVGElement[] {
  const parts: SVGElement[] = [];
  if (series.low.length && series.high.length) parts.push(...interval(series, look, put));
  if (tail.length) {
    const [only, ...more] = tail.filter((point) => point !== null);
    const d = only && !more.length ? `M${short(only.x - 6)} ${short(only.y)}h12` : path(tail);
    parts.push(svg("path", { class: `${look.colour} line thin`, d, "stroke-dasharray": look.dash }));
  }
  if (!look.published) {
    parts.push(svg("path", { class: `${look.colour} line`, d: path(points), "stroke-dasharray": look.dash }));
  }
  if (look.published || points.filter((point) => point !== null).length <= MARKS_MAX) {
    parts.push(...points.filter((point) => point !== null).map((point) => marked(look, point)));
  }
  const knee = series.mark && put(...series.mark);
  if (knee) parts.push(svg("circle", { class: `${look.colour} knee`, cx: short(knee.x), cy: short(knee.y), r: 9 }));
  return parts;
}

/** Points alone; their intervals are bars. */
function scattered(series: Series, points: (Point | null)[], look: Look, put: Put, isCrowd: boolean): SVGElement[] {
  const whiskers = bars(series, (n, values) => put(series.x[n] ?? null, values[n] ?? null));
  const marks = points.flatMap((point, n) => {
    const mark = series.marks[n];
    const size = isCrowd && !series.labels[n] ? SMALL : undefined;
    return point && mark ? [{ mark, size, drawn: pointed(look, mark, point, size) }] : [];
  });
  // Matching points come before others, labelled points before all.
  const rank = ({ mark, size }: { mark: string; size: number | undefined }) => (size === undefined ? 2 : 0) + (mark === "cross" ? 0 : 1);
  marks.sort((one, other) => rank(one) - rank(other));
  return [svg("path", { class: `${look.colour} line`, d: whiskers }), ...marks.map((one) => one.drawn)];
}

function bars(series: Series, end: (n: number, values: (number | null)[]) => Point | null): string {
  const ends = series.low.map((_, n) => [end(n, series.low), end(n, series.high)] as const);
  return ends.map(([bottom, top]) => (bottom && top ? `M${short(top.x)} ${short(top.y)}V${short(bottom.y)}` : "")).join("");
}

/** The interval round a line as a band, broken where it is not known; round published points, and one alone, as bars. */
function interval(series: Series, look: Look, put: Put): SVGElement[] {
  const ends = (values: (number | null)[], across: (number | null)[]) =>
    series.x.map((at, n) => put(across.length ? (across[n] ?? null) : at, values[n] ?? null));
  const [low, high] = [ends(series.low, series.low_x), ends(series.high, series.high_x)];
  if (look.published) {
    const bars = low.map((bottom, n) => {
      const top = high[n];
      return bottom && top ? `M${short(top.x)} ${short(top.y)}V${short(bottom.y)}` : "";
    });
    return [svg("path", { class: `${look.colour} line`, d: bars.join("") })];
  }
  const stretches: { low: Point; high: Point }[][] = [[]];
  low.forEach((bottom, n) => {
    const top = high[n];
    if (bottom && top) stretches.at(-1)?.push({ low: bottom, high: top });
    else stretches.push([]);
  });
  return stretches
    .filter((stretch) => stretch.length)
    .map((stretch) => [...stretch.map((point) => point.high), ...stretch.map((point) => point.low).reverse()])
    .map((round) => svg("path", { class: `${look.colour} band${round.length === 2 ? " one" : ""}`, d: `${path(round)}z` }));
}

function labels(figure: Lines, all: (Point | null)[][], tails: (Point | null)[][], styles: Look[], box: Box, rules: Rule[]): SVGElement {
  const ink = all.flatMap((points, index) => (figure.series[index]?.marks.length ? points.filter((one) => one !== null) : along(points)));
  ink.push(...tails.flatMap((points) => along(points)));
  const wanted = figure.series.flatMap((one, index) =>
    (all[index] ?? []).flatMap((at, n) => (at && one.labels[n] ? [{ at, text: one.labels[n], colour: styles[index]?.colour ?? "" }] : [])),
  );
  const isOfPoints = figure.series.some((one) => one.marks.length);
  const group = svg("g", { class: isOfPoints ? "labels over" : "labels" });
  labelled(wanted, ink, { ...box, top: box.top - 10, right: box.right + 12 }).forEach((label, n) => {
    if (!label) return;
    const at = { x: short(label.at.x), y: short(label.at.y), "text-anchor": label.end };
    group.append(svg("text", { ...at, class: wanted[n]?.colour ?? "" }, label.text));
  });
  for (const { series, n, from, to } of rules) {
    const text = figure.series[series]?.labels[n];
    if (!text) continue;
    const isFlat = from.y === to.y;
    const at = isFlat ? { x: short(to.x - 4), y: short(to.y - 4) } : { x: short(to.x - 4), y: short(to.y + 4) };
    const turned = isFlat ? {} : { transform: `rotate(-90 ${at.x} ${at.y})` };
    group.append(svg("text", { ...at, "text-anchor": "end", class: styles[series]?.colour ?? "", ...turned }, text));
  }
  return group;
}

function spots(figure: Lines, series: Series, index: number, points: (Point | null)[], box: Box, rules: Rule[]): (Spot | null)[] {
  return points.map((point, n) => {
    const rule = rules.find((one) => one.series === index && one.n === n);
    const at = point ?? (rule ? { x: (rule.from.x + rule.to.x) / 2, y: (rule.from.y + rule.to.y) / 2 } : null);
    if (!at || at.x < box.left - 1 || at.x > box.right + 1 || at.y < box.top - 1 || at.y > box.bottom + 1) return null;
    return { at, text: () => [nameOf(series), ...said(figure, series, n)] };
  });
}

function said(figure: Lines, series: Series, n: number): string[] {
  const end = (values: (number | null)[]) => values[n] ?? null;
  const [low, high] = [end(series.low), end(series.high)];
  const [x, y] = [end(series.x), end(series.y)];
  const parts: string[] = series.names[n] ? [series.names[n]] : [];
  const known = figure.key.find(([mark]) => mark === series.marks[n]);
  if (known) parts.push(known[1]);
  if (x !== null) parts.push(`${figure.x.label}: ${shown(x, figure.x_is_percentile ? 8 : 6)}`);
  if (y !== null) parts.push(`${figure.y.label}: ${shown(y, 6)}`);
  const tail = end(series.p99);
  if (low !== null && high !== null) parts.push(`from ${shown(low)} to ${shown(high)}`);
  if (tail !== null) parts.push(`99th percentile: ${shown(tail, 4)}`);
  if (series.labels[n] && !series.marks.length) parts.push(`at ${series.labels[n]}`);
  if (series.mark && series.mark[0] === series.x[n] && series.mark[1] === series.y[n]) parts.push(series.mark_at_most ? "knee, here or earlier" : "knee");
  return parts;
}
