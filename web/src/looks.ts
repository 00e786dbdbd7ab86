/** How series are drawn: in a colour, and with a dash and a shape for those who see none, or print in black. */

import { svg } from "./dom";
import { short, type Point } from "./geometry";
import type { Mark, Series, Shape } from "./report";

const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

export interface Look {
  /** The class that gives the colour. */
  colour: string;
  dash: string;
  shape: Shape;
  published: boolean;
}

export function looks(series: readonly Series[]): Look[] {
  return series.map(({ colour, dash, shape, published }) => ({ colour, dash: DASHES[dash] ?? "", shape, published }));
}

/** A mark at a point: filled if simulated, open and larger if published. */
export function marked(look: Look, at: Point): SVGElement {
  const size = look.published ? 5 : 3.2;
  const kind = look.shape === "asterisk" ? " star" : look.published ? " open" : "";
  const attributes = { class: `${look.colour} mark${kind}`, d: outline(look.shape, at, size) };
  return svg("path", attributes);
}

/** One of many points; its style shows its kind. */
export function pointed(look: Look, mark: Mark, at: Point, size = 4.2): SVGElement {
  if (mark === "cross") {
    const [r, arm] = [0.8 * size, short(1.6 * size)];
    const d = `M${short(at.x - r)} ${short(at.y - r)}l${arm} ${arm}M${short(at.x + r)} ${short(at.y - r)}l${-arm} ${arm}`;
    return svg("path", { class: `${look.colour} mark star`, d });
  }
  return svg("path", { class: `${look.colour} mark${mark === "open" ? " open" : ""}`, d: outline(look.shape, at, size) });
}

function outline(shape: Shape, { x, y }: Point, r: number): string {
  const [X, Y] = [short(x), short(y)];
  switch (shape) {
    case "circle":
      return `M${short(x - r)} ${Y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
    case "square":
      return `M${short(x - r)} ${short(y - r)}h${2 * r}v${2 * r}h${-2 * r}z`;
    case "triangle":
      return `M${X} ${short(y - 1.2 * r)}l${1.2 * r} ${2.1 * r}h${-2.4 * r}z`;
    case "down":
      return `M${X} ${short(y + 1.2 * r)}l${1.2 * r} ${-2.1 * r}h${-2.4 * r}z`;
    case "diamond":
      return `M${X} ${short(y - 1.4 * r)}L${short(x + 1.4 * r)} ${Y}L${X} ${short(y + 1.4 * r)}L${short(x - 1.4 * r)} ${Y}z`;
    case "asterisk":
      return [0, 1, 2]
        .map((n) => [1.3 * r * Math.cos((n * Math.PI) / 3 + Math.PI / 2), 1.3 * r * Math.sin((n * Math.PI) / 3 + Math.PI / 2)] as const)
        .map(([across, up]) => `M${short(x - across)} ${short(y - up)}L${short(x + across)} ${short(y + up)}`)
        .join("");
    case "cross": {
      const s = 0.45 * r;
      return `M${short(x - r - s)} ${short(y - s)}h${r}v${-r}h${2 * s}v${r}h${r}v${2 * s}h${-r}v${r}h${-2 * s}v${-r}h${-r}z`;
    }
  }
}

export function nameOf(series: Series): string {
  return series.published && !/published/i.test(series.name) ? `${series.name} (published)` : series.name;
}
