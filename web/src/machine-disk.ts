/** A disk at work: the platter from above, the arm's way over the cylinders, who waits, the buffer. */

import { countBy, countUpTo, levelAt, ms, type Disk, type Job, type Request, type Story } from "./machine-story";
import { bar, dot, text, type Paint, type View } from "./machine-view";

const WIDE = 540;
const TURNS_SHOWN = 20;
const QUEUE_SHOWN = 8;
/** The innermost cylinder lies at so much of the radius. */
const HUB = 0.4;
/** Where the head is over the platter, in turns clockwise from the right. */
const HEAD_AT = -0.11;

export class DiskView implements View {
  /** What the strip of time shows. */
  private readonly window_ns: number;
  readonly usual_ns_per_s: number;
  private readonly jobs: Job[];
  private readonly taken: number[];
  private readonly served: Job[];
  /** When a request came to the drive. */
  private readonly came: Map<number, number>;

  constructor(
    private readonly story: Story,
    private readonly disk: Disk,
  ) {
    this.jobs = story.jobs[0] ?? [];
    this.served = this.jobs.filter(({ isDone }) => isDone).sort((one, other) => one.taken_ns - other.taken_ns);
    this.came = new Map(this.jobs.flatMap(({ work, id, from_ns }) => (work === "command" ? [[id, from_ns] as const] : [])));
    for (const event of story.events) {
      // What neither waited nor needed the arm.
      if ((event.is === "hit" || event.is === "cached") && !this.came.has(event.id)) this.came.set(event.id, event.at_ns);
    }
    this.taken = this.served.map(({ taken_ns }) => taken_ns);
    this.window_ns = TURNS_SHOWN * disk.turn_ns;
    this.usual_ns_per_s = 1.5 * disk.turn_ns;
  }

  height(width: number): number {
    return width < WIDE ? Math.min(width, 300) + 452 : 400;
  }

  private waiting(at_ns: number): Job[] {
    return this.jobs.filter(({ from_ns, taken_ns }) => from_ns <= at_ns && at_ns < taken_ns);
  }

  /** Requests that the drive has not taken yet: those beyond its queue wait in the host. */
  private inFront(at_ns: number): number {
    const isInFront = ({ number, from_ns, to_ns }: Request) => from_ns <= at_ns && at_ns < to_ns && (this.came.get(number) ?? Infinity) > at_ns;
    return this.story.requests.filter(isInFront).length;
  }

  private at(at_ns: number): { job: Job | undefined; next: Job | undefined; cylinder: number; doing: string } {
    const n = countUpTo(this.taken, at_ns);
    const [job, next] = [this.served[n - 1], this.served[n]];
    if (!job) return { job, next, cylinder: 0, doing: "rests" };
    const into = at_ns - job.start_ns;
    if (at_ns >= job.end_ns) return { job, next, cylinder: job.cylinder, doing: "rests" };
    if (into < 0) return { job, next, cylinder: job.from_cylinder, doing: "the firmware decides" };
    if (into < job.seek_ns) {
      const share = eased(into / job.seek_ns);
      return { job, next, cylinder: job.from_cylinder + share * (job.cylinder - job.from_cylinder), doing: "seeks" };
    }
    const doing = into < job.seek_ns + job.rotation_ns ? "waits for the sector" : job.write ? "writes" : "reads";
    return { job, next, cylinder: job.cylinder, doing };
  }

  describe(at_ns: number): string {
    const { job, doing } = this.at(at_ns);
    const waiting = this.waiting(at_ns);
    const [oldest] = waiting;
    const arm = job && doing !== "rests" ? `The arm ${doing} for ${nameOf(job)}, cylinder ${job.cylinder}.` : "The arm rests.";
    if (!oldest) return `${arm} The queue is empty.`;
    const passed = countUpTo(oldest.passed_ns, at_ns);
    return `${arm} ${waiting.length} wait; ${nameOf(oldest)} waits longest, for ${ms(at_ns - oldest.from_ns)}, passed over ${passed} times.`;
  }

  draw(paint: Paint, width: number, at_ns: number, follow: number | null): void {
    const isNarrow = width < WIDE;
    const side = isNarrow ? Math.min(width, 300) : Math.min(300, 0.46 * width);
    this.platter(paint, side, at_ns, follow);
    const [left, top] = isNarrow ? [0, side + 44] : [side + 26, 0];
    this.way(paint, { left, top, width: width - left, height: 158 }, at_ns, follow);
    this.queue(paint, { left, top: top + 184, width: width - left }, at_ns, follow);
    this.buffer(paint, isNarrow ? { left: 0, top: top + 368, width } : { left: 0, top: 362, width }, at_ns);
  }

  private platter({ canvas, ink }: Paint, side: number, at_ns: number, follow: number | null): void {
    const { cylinders, zones, turn_ns } = this.disk;
    const [x, y, outer] = [0.47 * side, 0.5 * side, 0.44 * side];
    const radius = (cylinder: number) => outer * (1 - (1 - HUB) * (cylinder / cylinders));
    const turned = (at_ns / turn_ns) % 1;
    const place = (cylinder: number, angle: number) => {
      const turn = 2 * Math.PI * (HEAD_AT + angle - turned);
      return { x: x + radius(cylinder) * Math.cos(turn), y: y + radius(cylinder) * Math.sin(turn) };
    };
    zones.forEach(([first], n) => {
      canvas.fillStyle = n % 2 ? ink.ground : ink.raised;
      canvas.strokeStyle = ink.rule;
      canvas.beginPath();
      canvas.arc(x, y, radius(first), 0, 2 * Math.PI);
      canvas.fill();
      canvas.stroke();
    });
    canvas.fillStyle = ink.rule;
    canvas.beginPath();
    canvas.arc(x, y, radius(cylinders), 0, 2 * Math.PI);
    canvas.fill();
    // What shows that it turns: where turn 0 is.
    const [from, to] = [place(0, 0), place(cylinders, 0)];
    canvas.strokeStyle = ink.faint;
    canvas.beginPath();
    canvas.moveTo(from.x, from.y);
    canvas.lineTo(to.x, to.y);
    canvas.stroke();
    const { job, next, cylinder, doing } = this.at(at_ns);
    for (const waits of this.waiting(at_ns)) {
      const at = place(waits.cylinder, waits.angle);
      dot(canvas, at, 3 + Math.min(5, countUpTo(waits.passed_ns, at_ns) / 6), colourOf(waits, ink));
      if (waits === next) ring(canvas, at, 8, ink.faint);
      if (this.isFollowed(waits, follow)) ring(canvas, at, 11, ink.ink);
    }
    const head = { x: x + radius(cylinder) * Math.cos(2 * Math.PI * HEAD_AT), y: y + radius(cylinder) * Math.sin(2 * Math.PI * HEAD_AT) };
    if (job && doing !== "rests") {
      const at = place(job.cylinder, job.angle);
      dot(canvas, at, 5, colourOf(job, ink));
      ring(canvas, at, 9, colourOf(job, ink));
      if (this.isFollowed(job, follow)) ring(canvas, at, 12, ink.ink);
    }
    const pivot = { x: 0.95 * side, y: 0.93 * side };
    canvas.strokeStyle = canvas.fillStyle = ink.ink;
    canvas.lineWidth = 4;
    canvas.lineCap = "round";
    canvas.beginPath();
    canvas.moveTo(pivot.x, pivot.y);
    canvas.lineTo(head.x, head.y);
    canvas.stroke();
    canvas.lineWidth = 1;
    dot(canvas, pivot, 8, ink.ink);
    dot(canvas, head, 4, ink.ink);
    text(canvas, doing === "rests" || !job ? "the arm rests" : `${doing}: ${nameOf(job)}`, 0, side + 16, ink.ink, side);
  }

  /** Cylinders over time: what is to come is pale. */
  private way({ canvas, ink }: Paint, box: Box, at_ns: number, follow: number | null): void {
    const { left, top, width, height } = box;
    const from_ns = at_ns - 0.62 * this.window_ns;
    const to_ns = from_ns + this.window_ns;
    const x = (ns: number) => left + ((Math.min(ns, to_ns) - from_ns) / this.window_ns) * width;
    const y = (cylinder: number) => top + 18 + (cylinder / this.disk.cylinders) * (height - 20);
    text(canvas, `cylinder over time, ${ms(this.window_ns)} across`, left, top + 11, ink.faint, width);
    canvas.save();
    canvas.beginPath();
    canvas.rect(left, top + 16, width, height - 16);
    canvas.clip();
    canvas.fillStyle = ink.raised;
    canvas.fillRect(left, top + 16, width, height - 16);
    for (const job of this.jobs) {
      if (job.from_ns > to_ns || job.taken_ns < from_ns) continue;
      canvas.strokeStyle = this.isFollowed(job, follow) ? ink.ink : colourOf(job, ink);
      canvas.lineWidth = this.isFollowed(job, follow) ? 2.5 : 1;
      canvas.globalAlpha = this.isFollowed(job, follow) ? 1 : 0.4;
      line(canvas, [x(job.from_ns), y(job.cylinder), x(job.taken_ns), y(job.cylinder)]);
    }
    for (const pale of [true, false]) {
      canvas.save();
      canvas.beginPath();
      canvas.rect(pale ? x(at_ns) : left, top, pale ? width : x(at_ns) - left, height);
      canvas.clip();
      canvas.globalAlpha = pale ? 0.3 : 1;
      for (const job of this.served) {
        if (job.end_ns < from_ns || job.taken_ns > to_ns) continue;
        const seeks_ns = job.start_ns + job.seek_ns;
        canvas.strokeStyle = ink.ink;
        canvas.lineWidth = 1.5;
        line(canvas, [x(job.taken_ns), y(job.from_cylinder), x(job.start_ns), y(job.from_cylinder), x(seeks_ns), y(job.cylinder)]);
        canvas.lineWidth = 3;
        canvas.strokeStyle = ink.rule;
        line(canvas, [x(seeks_ns), y(job.cylinder), x(seeks_ns + job.rotation_ns), y(job.cylinder)]);
        dot(canvas, { x: x(job.end_ns), y: y(job.cylinder) }, this.isFollowed(job, follow) ? 6 : 3.5, colourOf(job, ink));
      }
      canvas.restore();
    }
    canvas.restore();
    canvas.strokeStyle = ink.link;
    line(canvas, [x(at_ns), top + 16, x(at_ns), top + height]);
  }

  private queue({ canvas, ink }: Paint, { left, top, width }: Omit<Box, "height">, at_ns: number, follow: number | null): void {
    const waiting = this.waiting(at_ns);
    const { next } = this.at(at_ns);
    const longest_ns = Math.max(8 * this.disk.turn_ns, ...waiting.map(({ from_ns }) => at_ns - from_ns));
    const inFront = this.inFront(at_ns);
    const others = inFront ? `; ${inFront} more in the host` : "";
    text(canvas, waiting.length ? `${waiting.length} wait in the drive, the oldest first${others}` : "the queue is empty", left, top + 6, ink.faint, width);
    const over = width < 340 ? "passed" : "passed over";
    waiting.slice(0, QUEUE_SHOWN).forEach((job, n) => {
      const y = top + 16 + 17 * n;
      const passed = countUpTo(job.passed_ns, at_ns);
      bar(canvas, left, y + 1, Math.max(3, (0.34 * width * (at_ns - job.from_ns)) / longest_ns), 11, colourOf(job, ink), 0.75);
      const words = `${job.work === "command" ? `#${job.id}` : nameOf(job)} ${ms(at_ns - job.from_ns)}${passed ? `, ${over} ${passed}×` : ""}${job === next ? ", next" : ""}`;
      text(canvas, words, left + 0.36 * width, y + 11, this.isFollowed(job, follow) || job === next ? ink.ink : ink.faint, 0.64 * width);
    });
    if (waiting.length > QUEUE_SHOWN) text(canvas, `and ${waiting.length - QUEUE_SHOWN} more`, left + 0.36 * width, top + 27 + 17 * QUEUE_SHOWN, ink.faint, 0.64 * width);
  }

  /** What each segment holds, and what of the write cache is dirty. */
  private buffer({ canvas, ink }: Paint, { left, top, width }: Omit<Box, "height">, at_ns: number): void {
    const { segments, segment_sectors, dirty_sectors_max } = this.disk;
    const dirty = this.story.dirty[0] ?? [];
    const half = dirty.length && segments ? 0.48 * width : width;
    if (segments) {
      const held = new Array<number>(segments).fill(0);
      let latest = -1;
      for (const { segment, from_block, to_block } of this.story.segments.slice(0, countBy(this.story.segments, (one) => one.at_ns, at_ns))) {
        held[segment] = (to_block - from_block) / segment_sectors;
        latest = segment;
      }
      text(canvas, `buffer: ${segments} segments`, left, top + 11, ink.faint, half);
      const each = Math.min(28, half / segments);
      held.forEach((share, n) => {
        bar(canvas, left + n * each, top + 17, each - 2, 14, ink.rule, 1);
        bar(canvas, left + n * each, top + 17, held[n] ? Math.max(2, (each - 2) * Math.min(1, share)) : 0, 14, ink.blue, n === latest ? 1 : 0.55);
      });
    }
    if (dirty.length) {
      const now = levelAt(dirty, at_ns);
      const from = left + width - half;
      text(canvas, `write cache: ${now} of ${dirty_sectors_max} sectors dirty`, from, top + 11, ink.faint, half);
      bar(canvas, from, top + 17, half, 14, ink.rule, 1);
      bar(canvas, from, top + 17, half * Math.min(1, now / Math.max(1, dirty_sectors_max)), 14, ink.red, 0.8);
    }
  }

  private isFollowed(job: Job, follow: number | null): boolean {
    return follow !== null && this.story.requestOf(job.work, job.id) === follow;
  }
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

function nameOf({ work, id }: Job): string {
  return work === "command" ? `request ${id}` : work === "destage" ? "a destage" : "own work";
}

function colourOf({ work, write }: Job, ink: Paint["ink"]): string {
  return work === "destage" ? ink.red : work === "own" ? ink.purple : write ? ink.yellow : ink.blue;
}

/** An arm speeds up and slows down. */
function eased(share: number): number {
  return share * share * (3 - 2 * share);
}

function ring(canvas: CanvasRenderingContext2D, { x, y }: { x: number; y: number }, radius: number, colour: string): void {
  canvas.strokeStyle = colour;
  canvas.lineWidth = 1.8;
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 2 * Math.PI);
  canvas.stroke();
  canvas.lineWidth = 1;
}

function line(canvas: CanvasRenderingContext2D, points: number[]): void {
  canvas.beginPath();
  for (let n = 0; n + 1 < points.length; n += 2) canvas.lineTo(points[n] ?? 0, points[n + 1] ?? 0);
  canvas.stroke();
}
