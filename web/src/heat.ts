/** A heat map of activity over address and time; cells without activity stay empty. */

import { canvas, clipped, heightOf, within, xAxis, yAxis, yTicks } from "./axes";
import type { Drawing, Spot, View } from "./chart";
import { html, svg } from "./dom";
import { short, type Box } from "./geometry";
import type { Heat } from "./report";
import { extent, figure as shown, scale, type Scale } from "./scale";

const SHADES = { light: ["#cfd5ef", "#5364bd", "#0c1f33"], dark: ["#27405a", "#5fa8e6", "#f2f8ff"] };
/** Ratio of largest to smallest value above which the scale is logarithmic. */
const MANY = 30;

export function heat(figure: Heat, width: number, view: View): Drawing {
  const height = heightOf(width) + 20;
  const x = scale(figure.x.log ? "log" : "linear", ...(view.x ?? figure.x_range));
  const y = scale(figure.y.log ? "log" : "linear", ...(view.y ?? figure.y_range));
  const ticks = yTicks(y, height - 30);
  const box = within(width, height, ticks.map(y.text), 78);
  const element = canvas(width, height, figure.title);
  const tones = tonesOf(figure);
  const pixel = (place: Scale, from: number, to: number, value: number) => from + place.at(value) * (to - from);
  const edges = {
    left: pixel(x, box.left, box.right, figure.x_range[0]),
    right: pixel(x, box.left, box.right, figure.x_range[1]),
    top: pixel(y, box.bottom, box.top, figure.y_range[1]),
    bottom: pixel(y, box.bottom, box.top, figure.y_range[0]),
  };
  const image = svg("image", {
    href: painted(figure.values, tones),
    x: short(edges.left),
    y: short(edges.top),
    width: short(edges.right - edges.left),
    height: short(edges.bottom - edges.top),
    preserveAspectRatio: "none",
  });
  element.append(xAxis(box, x, figure.x.label), yAxis(box, y, ticks, figure.y.label), clipped(box, image), key(figure, tones, box));
  return { element, box, x, y, spots: spots(figure, box, edges) };
}

interface Tones {
  scale: Scale;
  colour(share: number): [number, number, number];
}

function tonesOf(figure: Heat): Tones {
  const values = figure.values.flat().filter((value) => value !== 0);
  const [low, high] = values.length ? extent(values) : [0, 1];
  const isLog = low > 0 && high > MANY * low;
  const stops = SHADES[isDark() ? "dark" : "light"].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return {
    scale: scale(isLog ? "log" : "linear", isLog ? low : Math.min(0, low), high === low ? low + 1 : high),
    colour: (share) => {
      const place = Math.min(1, Math.max(0, share)) * (stops.length - 1);
      const index = Math.min(stops.length - 2, Math.floor(place));
      const mix = (channel: number) =>
        Math.round((stops[index]?.[channel] ?? 0) * (1 - place + index) + (stops[index + 1]?.[channel] ?? 0) * (place - index));
      return [mix(0), mix(1), mix(2)];
    },
  };
}

function isDark(): boolean {
  const chosen = getComputedStyle(document.documentElement).colorScheme;
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** A pixel for each cell, the lowest row at the bottom. */
function painted(values: number[][], tones: Tones): string {
  const [rows, columns] = [values.length, values[0]?.length ?? 0];
  const paper = html("canvas", { width: Math.max(1, columns), height: Math.max(1, rows) });
  const context = paper.getContext("2d");
  if (!context) throw new Error("no canvas");
  const image = context.createImageData(paper.width, paper.height);
  values.forEach((row, index) =>
    row.forEach((value, column) => {
      if (value === 0) return;
      image.data.set([...tones.colour(tones.scale.at(value)), 255], 4 * ((rows - 1 - index) * columns + column));
    }),
  );
  context.putImageData(image, 0, 0);
  return paper.toDataURL();
}

/** The legend of the shades. */
function key(figure: Heat, tones: Tones, box: Box): SVGElement {
  const [left, top, width] = [box.left, box.bottom + 46, Math.min(260, box.right - box.left)];
  const group = svg("g", { class: "axis" });
  for (let n = 0; n < 64; n++) {
    const fill = `rgb(${tones.colour((n + 0.5) / 64).join(" ")})`;
    group.append(svg("rect", { x: short(left + (n * width) / 64), y: top, width: short(width / 64 + 0.4), height: 9, fill }));
  }
  const isCount = figure.values.every((row) => row.every(Number.isInteger));
  for (const tick of tones.scale.ticks(5).filter((value) => !isCount || Number.isInteger(value))) {
    const x = short(left + tones.scale.at(tick) * width);
    group.append(svg("text", { x, y: top + 23, "text-anchor": "middle" }, tones.scale.text(tick)));
  }
  group.append(svg("text", { class: "label", x: left, y: top - 5 }, figure.unit));
  return group;
}

function spots(figure: Heat, box: Box, edges: Box): (Spot | null)[][] {
  const rows = figure.values.length;
  const columns = figure.values[0]?.length ?? 0;
  const [width, height] = [(edges.right - edges.left) / columns, (edges.bottom - edges.top) / rows];
  // From the highest: the arrow down goes down.
  return figure.values
    .map((values, row) =>
      values.map((value, column) => {
        const at = { x: edges.left + (column + 0.5) * width, y: edges.bottom - (row + 0.5) * height };
        const isSeen = at.x >= box.left && at.x <= box.right && at.y >= box.top && at.y <= box.bottom;
        return value !== 0 && isSeen ? { at, text: () => said(figure, row, column) } : null;
      }),
    )
    .reverse();
}

function said(figure: Heat, row: number, column: number): string[] {
  const value = figure.values[row]?.[column] ?? 0;
  const [xs, ys] = [cell(figure, "x", column), cell(figure, "y", row)];
  return [`${shown(value, 6)} ${figure.unit}`, `${figure.x.label}: ${range(xs)}`, `${figure.y.label}: ${range(ys)}`];
}

function range([from, to]: [number, number]): string {
  return `${shown(from, 4)} to ${shown(to, 4)}`;
}

/** The range of a row or column. */
export function cell(figure: Heat, axis: "x" | "y", index: number): [number, number] {
  const count = axis === "x" ? (figure.values[0]?.length ?? 1) : figure.values.length;
  const place = scale(figure[axis].log ? "log" : "linear", ...(axis === "x" ? figure.x_range : figure.y_range));
  return [place.value(index / count), place.value((index + 1) / count)];
}
