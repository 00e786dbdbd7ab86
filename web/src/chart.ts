/** An interactive chart: values nearest to the pointer or selected by arrow keys, and zooming by dragging. */

import { html, svg } from "./dom";
import { nearest, type Box, type Point } from "./geometry";
import type { Scale } from "./scale";

export type Range = [number, number];

/** The visible range of a chart; everything without a range. */
export interface View {
  x: Range | null;
  y: Range | null;
  hidden: ReadonlySet<number>;
}

/** A value that can be pointed at. */
export interface Spot {
  at: Point;
  /** A heading, then its description. */
  text: () => string[];
}

export interface Drawing {
  element: SVGSVGElement;
  box: Box;
  /** The values of each series in order; `null` for missing or invisible ones. */
  spots: (Spot | null)[][];
  /** The axes that can be zoomed. */
  x: Scale | null;
  y: Scale | null;
}

/** Charts that zoom together: those of one section over the same x axis. */
export type Linked = Map<string, Chart[]>;

const REACH = 60;
/** Distance to the visible area at which a chart is drawn, so that a long report opens immediately. */
const NEAR = "800px";
const LEAST_DRAG = 8;

export class Chart {
  readonly element: HTMLElement;
  private readonly paper = html("div", { class: "paper" });
  private readonly said = html("div", { class: "tip", role: "status", hidden: true });
  private readonly reset = html("button", { class: "reset", type: "button", hidden: true }, "whole range");
  private readonly dragged = html("div", { class: "dragged", hidden: true });
  private readonly ring = svg("circle", { class: "ring", r: 8 });
  private readonly hidden = new Set<number>();
  private x: Range | null = null;
  private y: Range | null = null;
  private drawing: Drawing | null = null;
  private chosen: [number, number] | null = null;
  private width = 0;
  private isNear = false;

  constructor(
    title: string,
    private readonly draw: (width: number, view: View) => Drawing,
    private readonly together: () => Chart[] = () => [],
    still: Element | null = null,
  ) {
    const name = `${title}. Use the arrow keys to move between values, Escape to leave.`;
    this.paper.setAttribute("role", "group");
    this.paper.setAttribute("aria-label", name);
    this.paper.tabIndex = 0;
    // The static picture until it is drawn, for a page that is printed before.
    if (still) this.paper.append(still);
    this.element = html("div", { class: "plot" }, this.paper, this.dragged, this.said, this.reset);
    this.listen();
    new ResizeObserver(([entry]) => this.fit(Math.floor(entry?.contentRect.width ?? 0))).observe(this.element);
    const near = new IntersectionObserver(
      ([entry]) => {
        if (!entry?.isIntersecting) return;
        near.disconnect();
        this.isNear = true;
        this.fit(Math.floor(this.element.clientWidth));
      },
      { rootMargin: NEAR },
    );
    near.observe(this.element);
  }

  /** Draws it at a width once it is nearly visible. On paper the existing drawing is scaled. */
  private fit(width: number): void {
    if (this.isNear && width > 0 && width !== this.width && !matchMedia("print").matches) this.redraw(width);
  }

  /** Redraws it: at another width, or after a change of its data. */
  redraw(width = this.width || this.element.clientWidth || 640): void {
    this.width = width;
    this.drawing = this.draw(width, { x: this.x, y: this.y, hidden: this.hidden });
    this.paper.replaceChildren(this.drawing.element);
    this.reset.hidden = this.x === null && this.y === null;
    this.leave();
  }

  /** Shows a series, or not. */
  toggle(series: number, shown: boolean): void {
    if (shown) this.hidden.delete(series);
    else this.hidden.add(series);
    this.redraw();
  }

  /** Shows a range; everything without one. Linked charts follow along x. */
  zoom(x: Range | null, y: Range | null): void {
    [this.x, this.y] = [x, y];
    this.redraw();
    for (const other of this.together()) {
      if (other === this) continue;
      [other.x, other.y] = [x, null];
      other.redraw();
    }
  }

  private listen(): void {
    const paper = this.paper;
    let start: Point | null = null;
    paper.addEventListener("pointermove", (event) => {
      const at = this.place(event);
      if (start && event.buttons) this.drag(start, at);
      else this.point(at);
    });
    paper.addEventListener("pointerdown", (event) => {
      this.point(this.place(event));
      if (event.pointerType === "touch" || event.button !== 0 || !this.drawing?.x) return;
      start = this.place(event);
      paper.setPointerCapture(event.pointerId);
    });
    paper.addEventListener("pointerup", (event) => {
      const end = this.place(event);
      if (start) this.dropped(start, end);
      start = null;
      this.dragged.hidden = true;
    });
    // Lifting a finger also fires "leave": keep the selected value.
    paper.addEventListener("pointerleave", (event) => start === null && event.pointerType !== "touch" && this.leave());
    paper.addEventListener("dblclick", () => this.zoom(null, null));
    this.reset.addEventListener("click", () => {
      this.zoom(null, null);
      paper.focus();
    });
    paper.addEventListener("keydown", (event) => this.key(event));
    paper.addEventListener("blur", () => this.leave());
  }

  private place(event: PointerEvent): Point {
    const frame = this.paper.getBoundingClientRect();
    const scale = this.width / (frame.width || 1);
    return { x: (event.clientX - frame.left) * scale, y: (event.clientY - frame.top) * scale };
  }

  private point(at: Point): void {
    const places: [number, number][] = [];
    const points: Point[] = [];
    this.drawing?.spots.forEach((row, series) =>
      row.forEach((spot, index) => {
        if (spot) points.push(spot.at), places.push([series, index]);
      }),
    );
    const found = places[nearest(points, at, REACH)];
    if (found) this.choose(found);
    else this.leave();
  }

  private choose(place: [number, number]): void {
    const spot = this.drawing?.spots[place[0]]?.[place[1]];
    if (!spot || !this.drawing) return;
    this.chosen = place;
    this.ring.setAttribute("cx", String(spot.at.x));
    this.ring.setAttribute("cy", String(spot.at.y));
    this.drawing.element.append(this.ring);
    const [heading, ...rest] = spot.text();
    this.said.replaceChildren(html("b", {}, heading ?? ""), ...rest.map((line) => html("div", {}, line)));
    this.said.hidden = false;
    const isLeft = spot.at.x < this.width / 2;
    this.said.style.left = isLeft ? `${spot.at.x + 14}px` : "auto";
    this.said.style.right = isLeft ? "auto" : `${this.width - spot.at.x + 14}px`;
    this.said.style.top = `${Math.max(0, spot.at.y - 20)}px`;
  }

  private leave(): void {
    this.chosen = null;
    this.ring.remove();
    this.said.hidden = true;
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") {
      if (this.chosen) this.leave();
      else this.zoom(null, null);
    } else if (step) {
      event.preventDefault();
      const spots = this.drawing?.spots ?? [];
      const place = this.chosen ? stepped(spots, this.chosen, step as [number, number]) : first(spots);
      if (place) this.choose(place);
    }
  }

  private drag(start: Point, end: Point): void {
    const area = this.area(start, end);
    this.leave();
    this.dragged.hidden = area === null;
    if (!area) return;
    Object.assign(this.dragged.style, {
      left: `${area.left}px`,
      top: `${area.top}px`,
      width: `${area.right - area.left}px`,
      height: `${area.bottom - area.top}px`,
    });
  }

  /** The dragged rectangle within the axes. A flat one selects only x. */
  private area(start: Point, end: Point): (Box & { isFlat: boolean }) | null {
    if (!this.drawing || Math.abs(end.x - start.x) < LEAST_DRAG) return null;
    const { box } = this.drawing;
    const keep = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));
    const isFlat = Math.abs(end.y - start.y) < 3 * LEAST_DRAG || this.drawing.y === null;
    return {
      isFlat,
      left: keep(Math.min(start.x, end.x), box.left, box.right),
      right: keep(Math.max(start.x, end.x), box.left, box.right),
      top: isFlat ? box.top : keep(Math.min(start.y, end.y), box.top, box.bottom),
      bottom: isFlat ? box.bottom : keep(Math.max(start.y, end.y), box.top, box.bottom),
    };
  }

  private dropped(start: Point, end: Point): void {
    const area = this.area(start, end);
    if (!area || !this.drawing?.x || area.right - area.left < LEAST_DRAG) return;
    const { box, x, y } = this.drawing;
    const along = (at: number) => (at - box.left) / (box.right - box.left);
    const up = (at: number) => (box.bottom - at) / (box.bottom - box.top);
    const part: Range = [x.value(along(area.left)), x.value(along(area.right))];
    this.zoom(part, area.isFlat || !y ? null : [y.value(up(area.bottom)), y.value(up(area.top))]);
  }
}

/** The next value in a direction: along its series, or the nearest of the next series that is in sight. */
export function stepped(
  spots: readonly (readonly (Spot | null)[])[],
  [series, index]: [number, number],
  [down, right]: [number, number],
): [number, number] | null {
  const row = spots[series] ?? [];
  for (let next = index + right; right !== 0 && next >= 0 && next < row.length; next += right) {
    if (row[next]) return [series, next];
  }
  const from = row[index];
  for (let next = series + down; down !== 0 && from && next >= 0 && next < spots.length; next += down) {
    const others = spots[next] ?? [];
    const known = others.flatMap((spot, place) => (spot ? [place] : []));
    const found = nearest(known.map((place) => others[place]?.at ?? from.at), from.at);
    const place = known[found];
    if (place !== undefined) return [next, place];
  }
  return null;
}

function first(spots: readonly (readonly (Spot | null)[])[]): [number, number] | null {
  for (const [series, row] of spots.entries()) {
    const index = row.findIndex((spot) => spot !== null);
    if (index >= 0) return [series, index];
  }
  return null;
}
