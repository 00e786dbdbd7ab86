/** An array at work: which members read and write for whom, phase by phase. */

import { levelAt, ms, PURPOSES, type Command, type Job, type Purpose, type Story } from "./machine-story";
import { bar, text, type Ink, type Paint, type View } from "./machine-view";

const TOP = 64;
const DRIVES = 74;

export class ArrayView implements View {
  /** What the strip of time shows. */
  private readonly window_ns: number;
  readonly usual_ns_per_s: number;
  /** What the arm of a member did for a command. */
  private readonly jobs = new Map<number, Job>();
  private readonly members: number;
  /** What drives write of their own write caches, by member. */
  private readonly destages: Job[];

  constructor(private readonly story: Story) {
    this.destages = story.jobs.flat().filter(({ work, isDone }) => work !== "command" && isDone);
    this.members = story.watched.machine.members.length;
    for (const job of story.jobs.flat()) if (job.work === "command" && job.isDone) this.jobs.set(job.id, job);
    this.window_ns = Math.max(2e5, 4 * story.mean_ns);
    this.usual_ns_per_s = this.window_ns / 6;
  }

  private get levelsHeight(): number {
    return this.story.rebuilt.level.length || this.story.watched.machine.dirty_pages_max ? 40 : 6;
  }

  private get lane(): number {
    return Math.max(9, Math.min(22, 300 / this.members));
  }

  height(): number {
    return TOP + DRIVES + this.levelsHeight + this.members * this.lane + 34;
  }

  /** What a member does now: the command in its arm, or where it has none, the one that it has had longest. */
  private now(at_ns: number): Map<number, { command: Command; isServed: boolean }> {
    const found = new Map<number, { command: Command; isServed: boolean }>();
    for (const command of this.story.commands) {
      if (!isUnderWay(command, at_ns)) continue;
      const job = this.jobs.get(command.number);
      const isServed = job === undefined || job.taken_ns <= at_ns;
      const before = found.get(command.member);
      if (!before || (isServed && !before.isServed)) found.set(command.member, { command, isServed });
    }
    return found;
  }

  /** The request that is shown as a whole: the followed one while it is under way, else the oldest. */
  private shown(at_ns: number, follow: number | null): number | null {
    const isThere = (number: number) => {
      const request = this.story.requests[number];
      return request !== undefined && request.from_ns <= at_ns && at_ns < request.to_ns;
    };
    if (follow !== null && isThere(follow)) return follow;
    return this.story.requests.find(({ number }) => isThere(number))?.number ?? null;
  }

  describe(at_ns: number, follow: number | null): string {
    const { story } = this;
    const number = this.shown(at_ns, follow);
    const parts = story.commands.filter((command) => command.request === number && isUnderWay(command, at_ns));
    const doing = parts.map(({ member, kind, purpose }) => `${story.name(member)} ${kind}s ${PURPOSES[purpose]}`).join(", ");
    const request = story.requests[number ?? -1];
    const asked = doing || "all its member commands have completed";
    const first = request ? `Request ${number}, ${request.kind} ${request.length_bytes / 1024} KiB: ${asked}.` : "No request is in flight.";
    const rebuild = story.commands.filter((command) => command.purpose === "rebuild" && isUnderWay(command, at_ns)).length;
    const done = levelAt(story.rebuilt.level, at_ns);
    return `${first}${rebuild ? ` ${rebuild} commands are for the rebuild, which has ${(done / 1e6).toFixed(1)} MB.` : ""}`;
  }

  draw(paint: Paint, width: number, at_ns: number, follow: number | null): void {
    const shown = this.shown(at_ns, follow);
    this.request(paint, width, at_ns, shown);
    this.drives(paint, width, at_ns, shown);
    this.levels(paint, width, at_ns);
    this.lanes(paint, width, at_ns, shown);
  }

  private centre(member: number, width: number): number {
    return ((member + 0.5) / this.members) * width;
  }

  /** The host's request above its members, and what it waits for. */
  private request({ canvas, ink }: Paint, width: number, at_ns: number, number: number | null): void {
    const request = this.story.requests[number ?? -1];
    const others = this.story.requests.filter(({ from_ns, to_ns }) => from_ns <= at_ns && at_ns < to_ns).length - 1;
    const more = others > 0 ? `; ${others} more in flight` : "";
    const words = request ? `request ${number}: ${request.kind} ${request.length_bytes / 1024} KiB, for ${ms(at_ns - request.from_ns)}${more}` : "no request is in flight";
    canvas.textAlign = "center";
    text(canvas, words, width / 2, 14, ink.ink, width);
    canvas.textAlign = "left";
    if (!request) return;
    const from = { x: width / 2, y: 20 };
    for (const command of this.story.commands) {
      if (command.request !== number || command.from_ns > at_ns) continue;
      const to = { x: this.centre(command.member, width), y: TOP - 2 };
      const isOver = command.to_ns <= at_ns;
      canvas.strokeStyle = colourOf(command.purpose, ink);
      canvas.globalAlpha = isOver ? 0.3 : 1;
      canvas.lineWidth = isOver ? 1.5 : 3;
      canvas.setLineDash(command.kind === "read" ? [5, 3] : []);
      canvas.beginPath();
      canvas.moveTo(from.x, from.y);
      canvas.bezierCurveTo(from.x, TOP - 20, to.x, 30, to.x, to.y);
      canvas.stroke();
    }
    canvas.setLineDash([]);
    canvas.globalAlpha = 1;
    canvas.lineWidth = 1;
  }

  private drives({ canvas, ink }: Paint, width: number, at_ns: number, shown: number | null): void {
    const { story } = this;
    const each = Math.min(84, width / this.members - 3);
    const now = this.now(at_ns);
    const filled = story.rebuilt;
    for (let member = 0; member < this.members; member++) {
      const x = this.centre(member, width) - each / 2;
      const hasFailed = (story.fails.get(member) ?? Infinity) <= at_ns;
      const doing = now.get(member);
      bar(canvas, x, TOP, each, 40, ink.raised, 1);
      const destages = this.destages.some((job) => job.member === member && job.taken_ns <= at_ns && at_ns < job.end_ns);
      if (destages) bar(canvas, x, TOP, each, 40, ink.faint, 0.55);
      if (filled.member === member && filled.level.length) {
        const share = levelAt(filled.level, at_ns) / filled.of_bytes;
        bar(canvas, x, TOP + 40 - 40 * share, each, 40 * share, ink.green, 0.5);
      }
      if (doing) {
        const { command, isServed } = doing;
        const isOthers = shown !== null && command.request !== shown;
        bar(canvas, x, TOP, each, 40, colourOf(command.purpose, ink), (isServed ? 0.9 : 0.25) * (isOthers ? 0.6 : 1));
      }
      canvas.strokeStyle = hasFailed ? ink.red : ink.faint;
      canvas.strokeRect(x + 0.5, TOP + 0.5, each - 1, 39);
      if (hasFailed) {
        canvas.beginPath();
        canvas.moveTo(x, TOP);
        canvas.lineTo(x + each, TOP + 40);
        canvas.moveTo(x + each, TOP);
        canvas.lineTo(x, TOP + 40);
        canvas.stroke();
      }
      const queue = story.commands.filter((command) => command.member === member && isUnderWay(command, at_ns)).length;
      canvas.textAlign = "center";
      if (doing && each > 26) {
        bar(canvas, x + each / 2 - 17, TOP + 12, 34, 17, ink.ground, 0.9);
        text(canvas, doing.command.kind, x + each / 2, TOP + 25, ink.ink, each);
      }
      if (each > 16 || member % 4 === 0) text(canvas, story.name(member), x + each / 2, TOP + 54, ink.faint);
      if (queue > 1) text(canvas, `${queue}`, x + each / 2, TOP + 68, ink.ink);
      canvas.textAlign = "left";
    }
  }

  /** How far a rebuild is, and how dirty the cache. */
  private levels({ canvas, ink }: Paint, width: number, at_ns: number): void {
    const { rebuilt, dirtyPages, watched } = this.story;
    const top = TOP + DRIVES;
    if (rebuilt.level.length) {
      const done = levelAt(rebuilt.level, at_ns);
      text(canvas, `rebuilt: ${(done / 1e6).toFixed(1)} MB of ${(rebuilt.of_bytes / 1e9).toFixed(0)} GB`, 0, top + 14, ink.faint, width / 2);
    }
    const most = watched.machine.dirty_pages_max;
    if (most) {
      const dirty = levelAt(dirtyPages, at_ns);
      text(canvas, `cache: ${dirty} of ${most} pages dirty`, width / 2, top + 14, ink.faint, width / 2);
      bar(canvas, width / 2, top + 20, width / 2, 9, ink.rule, 1);
      bar(canvas, width / 2, top + 20, (width / 2) * Math.min(1, dirty / most), 9, ink.red, 0.8);
    }
  }

  /** The members over time: pale while a command waits, full while the arm is at it. */
  private lanes({ canvas, ink }: Paint, width: number, at_ns: number, shown: number | null): void {
    const top = TOP + DRIVES + this.levelsHeight;
    const { lane, members, story } = this;
    const left = 34;
    const from_ns = at_ns - 0.65 * this.window_ns;
    const to_ns = from_ns + this.window_ns;
    const x = (ns: number) => left + ((Math.max(from_ns, Math.min(to_ns, ns)) - from_ns) / this.window_ns) * (width - left);
    text(canvas, `members over time, ${ms(this.window_ns)} across`, 0, top + 10, ink.faint, width);
    for (let member = 0; member < members; member++) {
      const y = top + 18 + member * lane;
      bar(canvas, left, y, width - left, lane - 2, ink.raised, 1);
      if (lane > 12 || member % 2 === 0) text(canvas, story.name(member), 0, y + Math.min(lane, 13) - 2, ink.faint, left - 4);
    }
    for (const { member, taken_ns, end_ns } of this.destages) {
      if (taken_ns > to_ns || end_ns < from_ns) continue;
      bar(canvas, x(taken_ns), top + 18 + member * lane, Math.max(1, x(end_ns) - x(taken_ns)), lane - 2, ink.faint, 0.55);
    }
    for (const command of story.commands) {
      if (command.from_ns > to_ns || command.to_ns < from_ns) continue;
      const y = top + 18 + command.member * lane;
      const colour = colourOf(command.purpose, ink);
      const dims = shown !== null && command.request !== shown ? 0.45 : 1;
      const ends_ns = Math.min(command.to_ns, story.end_ns);
      const job = this.jobs.get(command.number);
      bar(canvas, x(command.from_ns), y, x(ends_ns) - x(command.from_ns), lane - 2, colour, job ? 0.18 * dims : dims);
      if (job) bar(canvas, x(job.taken_ns), y, Math.max(1, x(job.end_ns) - x(job.taken_ns)), lane - 2, colour, dims);
      // Writes have a mark, for readers who cannot distinguish colours.
      const [begins, ends] = [x(job?.taken_ns ?? command.from_ns), x(job?.end_ns ?? ends_ns)];
      if (command.kind === "write") bar(canvas, begins, y + lane - 5, Math.max(1, ends - begins), 3, ink.ink, dims);
    }
    bar(canvas, x(at_ns), top + 18, width, members * lane, ink.ground, 0.55);
    bar(canvas, x(at_ns), top + 18, 1.5, members * lane, ink.link, 1);
  }
}

function isUnderWay({ from_ns, to_ns }: Command, at_ns: number): boolean {
  return from_ns <= at_ns && at_ns < to_ns;
}

function colourOf(purpose: Purpose, ink: Ink): string {
  return ink[COLOURS[purpose]];
}

export const COLOURS = { data: "blue", parity: "purple", old: "cyan", survivor: "red", rebuild: "green", upkeep: "yellow" } as const;
