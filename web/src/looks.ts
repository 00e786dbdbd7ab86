/** How series are told apart: by colour, and by dash and shape for those who see none, or print in black. */

import { svg } from "./dom";
import { short, type Point } from "./geometry";
import type { Series } from "./report";

const COLOURS = 6;
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

export interface Look {
  /** The class that gives the colour. */
  colour: string;
  dash: string;
  shape: Shape;
  published: boolean;
}

type Shape = (typeof SHAPES)[number];
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down"] as const;

/** The look of each series. Published ones look like those of ours that they name: they belong together. */
export function looks(series: readonly Series[]): Look[] {
  const ours = series.filter((one) => !one.published).map((one) => one.name);
  const belongs = (one: Series) => (one.published ? namedIn(one.name, ours) : one.name);
  const names = [...new Set(series.map(belongs))];
  return series.map((one) => {
    const number = names.indexOf(belongs(one));
    return {
      colour: `c${number % COLOURS}`,
      dash: DASHES[Math.floor(number / COLOURS) % DASHES.length] ?? "",
      shape: SHAPES[number % SHAPES.length] ?? "circle",
      published: one.published,
    };
  });
}

/** The longest of the names that stands in another as a whole; else that one itself. */
function namedIn(name: string, ours: readonly string[]): string {
  const stands = (our: string) => {
    const at = ` ${name} `.indexOf(our);
    return at > 0 && !/\w/.test(` ${name} `[at - 1] ?? "") && !/\w/.test(` ${name} `[at + our.length] ?? "");
  };
  return ours.filter(stands).sort((one, other) => other.length - one.length)[0] ?? name;
}

/** A mark at a point: full where it is ours, open and larger where it was published. */
export function marked(look: Look, at: Point): SVGElement {
  const size = look.published ? 5 : 3.2;
  const attributes = { class: `${look.colour} mark${look.published ? " open" : ""}`, d: outline(look.shape, at, size) };
  return svg("path", attributes);
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
    case "cross": {
      const s = 0.45 * r;
      return `M${short(x - r - s)} ${short(y - s)}h${r}v${-r}h${2 * s}v${r}h${r}v${2 * s}h${-r}v${r}h${-2 * s}v${-r}h${-r}z`;
    }
  }
}

export function nameOf(series: Series): string {
  return series.published && !/published/i.test(series.name) ? `${series.name} (published)` : series.name;
}
