/** The frame of a chart: margins for its axes, grid lines at round values, labels. */

import { svg } from "./dom";
import { short, type Box } from "./geometry";
import { ticksApart, type Scale } from "./scale";

const CHARACTER = 6.6;
/** The margins around the axes. */
const RIGHT = 14;

/** The height of a chart of that width: flat enough for a screen, high enough to read on a phone. */
export function heightOf(width: number): number {
  return Math.round(Math.min(440, Math.max(250, 0.6 * width)));
}

/** The part of a chart within its axes. The margin of the y axis fits its widest label. */
export function within(width: number, height: number, yTexts: string[], bottom = 42, right = RIGHT): Box {
  const widest = Math.max(2, ...yTexts.map((text) => text.length));
  return { left: Math.ceil(CHARACTER * widest + 14), top: 26, right: width - right, bottom: height - bottom };
}

/** An empty chart with a description for screen readers. */
export function canvas(width: number, height: number, title: string): SVGSVGElement {
  const attributes = { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": title };
  return svg("svg", attributes, svg("title", {}, title));
}

export function xAxis(box: Box, x: Scale, label: string): SVGElement {
  const group = svg("g", { class: "axis" });
  for (const tick of ticksApart(x, box.right - box.left, CHARACTER)) {
    const at = short(box.left + x.at(tick) * (box.right - box.left));
    // At the right edge it is shifted into the picture.
    const most = short(box.right + RIGHT - (CHARACTER * x.text(tick).length) / 2);
    group.append(
      svg("path", { class: "rule", d: `M${at} ${box.top}V${box.bottom}` }),
      svg("text", { x: Math.min(at, most), y: box.bottom + 16, "text-anchor": "middle" }, x.text(tick)),
    );
  }
  group.append(named(box, label));
  return group;
}

/** The label of the x axis, below it. */
export function named(box: Box, label: string, below = 34): SVGElement {
  return svg("text", { class: "label", x: box.right, y: box.bottom + below, "text-anchor": "end" }, label);
}

export function yTicks(y: Scale, height: number): number[] {
  return y.ticks(Math.floor((height - 70) / 38));
}

export function yAxis(box: Box, y: Scale, ticks: number[], label: string): SVGElement {
  const group = svg("g", { class: "axis" });
  for (const tick of ticks) {
    const at = short(box.bottom - y.at(tick) * (box.bottom - box.top));
    group.append(
      svg("path", { class: tick === 0 ? "rule zero" : "rule", d: `M${box.left} ${at}H${box.right}` }),
      svg("text", { x: box.left - 7, y: at + 4, "text-anchor": "end" }, y.text(tick)),
    );
  }
  group.append(svg("text", { class: "label", x: 2, y: 12 }, label));
  return group;
}

let clips = 0;

/** Content clipped to the axes, such as lines that a zoom moves out of them. */
export function clipped(box: Box, ...children: SVGElement[]): SVGElement {
  const id = `clip-${clips++}`;
  // Marks at the edge are whole.
  const [x, y] = [box.left - 4, box.top - 4];
  const size = { width: Math.max(0, box.right - box.left + 8), height: Math.max(0, box.bottom - box.top + 8) };
  return svg(
    "g",
    { "clip-path": `url(#${id})` },
    svg("clipPath", { id }, svg("rect", { x, y, ...size })),
    ...children,
  );
}
