/** Geometry in pixels: the nearest point, label positions that cover the least. */

export interface Point {
  x: number;
  y: number;
}

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The place of the nearest point in the list, or -1 where there is none within reach. */
export function nearest(points: readonly Point[], to: Point, reach = Infinity): number {
  let [found, least] = [-1, reach * reach];
  points.forEach((point, index) => {
    const distance = (point.x - to.x) ** 2 + (point.y - to.y) ** 2;
    if (distance <= least) [found, least] = [index, distance];
  });
  return found;
}

/** An SVG path through points in their order, broken where one is missing. */
export function path(points: readonly (Point | null)[]): string {
  let broken = true;
  let drawn = "";
  for (const point of points) {
    if (point) drawn += `${broken ? "M" : "L"}${short(point.x)} ${short(point.y)}`;
    broken = point === null;
  }
  return drawn;
}

/** Tenths of a pixel are enough. */
export function short(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}

export interface Label {
  text: string;
  at: Point;
  end: "start" | "end";
}

/** Positions of a label relative to its point, best first. */
const PLACES: { x: number; y: number; end: "start" | "end" }[] = [
  { x: 7, y: 14, end: "start" },
  { x: -7, y: -6, end: "end" },
  { x: 7, y: -6, end: "start" },
  { x: -7, y: 14, end: "end" },
  { x: 10, y: 4, end: "start" },
  { x: -10, y: 4, end: "end" },
];
const CHARACTER = 6.2;
const HEIGHT = 9;

/**
 * Places labels next to their points such that they cover lines least, without overlap and within the frame.
 * A label without such a position is omitted.
 */
export function labelled(
  points: readonly { at: Point; text: string }[],
  ink: readonly Point[],
  frame: Box,
): (Label | null)[] {
  const taken: Box[] = [];
  return points.map(({ at, text }) => {
    let best: { label: Label; box: Box; covered: number } | null = null;
    for (const place of PLACES) {
      const label = { text, at: { x: at.x + place.x, y: at.y + place.y }, end: place.end };
      const box = boxOf(label);
      if (!within(box, frame) || taken.some((other) => overlap(box, other))) continue;
      const covered = ink.filter((point) => inside(point, box)).length;
      if (best === null || covered < best.covered) best = { label, box, covered };
    }
    if (best) taken.push(best.box);
    return best && best.label;
  });
}

function boxOf({ text, at, end }: Label): Box {
  const width = CHARACTER * text.length;
  const left = end === "start" ? at.x : at.x - width;
  return { left, right: left + width, top: at.y - HEIGHT, bottom: at.y + 1 };
}

function within(box: Box, frame: Box): boolean {
  return box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
}

export function overlap(one: Box, other: Box): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

function inside(point: Point, box: Box): boolean {
  return point.x > box.left - 2 && point.x < box.right + 2 && point.y > box.top - 2 && point.y < box.bottom + 2;
}

/** Points every few pixels along a line: its ink, which labels shall not cover. */
export function along(points: readonly (Point | null)[], step = 5): Point[] {
  const ink: Point[] = [];
  points.forEach((end, index) => {
    const start = points[index - 1] ?? end;
    if (!start || !end) return;
    const count = Math.max(1, Math.ceil(Math.hypot(end.x - start.x, end.y - start.y) / step));
    for (let n = 0; n <= count; n++) {
      ink.push({ x: start.x + ((end.x - start.x) * n) / count, y: start.y + ((end.y - start.y) * n) / count });
    }
  });
  return ink;
}
