/** A solid-state drive at work: what each die does, and which reads wait for it. */

import { ms, type DieWork, type Ask, type Ssd, type Story, type Task } from "./machine-story";
import { bar, dot, text, type Ink, type Paint, type View } from "./machine-view";

const LANES_MAX = 24;
const CELL = 34;

export class SsdView implements View {
  /** What the strip of time shows. */
  private readonly window_ns: number;
  readonly usual_ns_per_s: number;
  /** The dies of which the strip shows what they do: those that most reads wait for. */
  private readonly lanes: number[];
  private readonly columns: number;

  constructor(
    private readonly story: Story,
    private readonly ssd: Ssd,
  ) {
    const waits = new Array<number>(ssd.dies).fill(0);
    for (const { die, from_ns, taken_ns } of story.asks) waits[die] = (waits[die] ?? 0) + Math.min(taken_ns, story.end_ns) - from_ns;
    const order = waits.map((_, die) => die).sort((one, other) => (waits[other] ?? 0) - (waits[one] ?? 0));
    this.lanes = order.slice(0, LANES_MAX).sort((one, other) => one - other);
    this.columns = ssd.channels;
    this.window_ns = 4 * ssd.program_ns;
    this.usual_ns_per_s = ssd.program_ns / 4;
  }

  private get rows(): number {
    return Math.ceil(this.ssd.dies / this.columns);
  }

  height(): number {
    return 24 + this.rows * this.cellHeight() + 50 + this.lanes.length * 15 + 10;
  }

  private cellHeight(): number {
    return Math.max(12, Math.min(CELL, 220 / this.rows));
  }

  private now(at_ns: number): Map<number, Task> {
    const found = new Map<number, Task>();
    for (const task of this.story.tasks) if (task.from_ns <= at_ns && at_ns < task.to_ns) found.set(task.die, task);
    return found;
  }

  private waiting(at_ns: number): Ask[] {
    return this.story.asks.filter(({ from_ns, taken_ns }) => from_ns <= at_ns && at_ns < taken_ns);
  }

  describe(at_ns: number): string {
    const counts = new Map<string, number>();
    const now = this.now(at_ns);
    for (const { does } of now.values()) counts.set(DOING[does], (counts.get(DOING[does]) ?? 0) + 1);
    const waiting = this.waiting(at_ns);
    const [oldest] = waiting;
    const busy = [...counts].map(([words, count]) => `${count} ${words}`).join(", ");
    const behind = oldest && now.get(oldest.die);
    const why = oldest && `the oldest for ${ms(at_ns - oldest.from_ns)}, since die ${oldest.die} is ${behind ? DOING[behind.does] : "about to begin"}.`;
    const waits = why ? `${waiting.length} ${waiting.length === 1 ? "read waits" : "reads wait"}; ${why}` : "No read waits.";
    return `${busy ? `Of ${this.ssd.dies} dies ${busy}.` : "All dies are idle."} ${waits}`;
  }

  draw(paint: Paint, width: number, at_ns: number, follow: number | null): void {
    this.dies(paint, width, at_ns, follow);
    this.strip(paint, width, at_ns, follow);
  }

  private dies({ canvas, ink }: Paint, width: number, at_ns: number, follow: number | null): void {
    const now = this.now(at_ns);
    const waiting = this.waiting(at_ns);
    const [across, down] = [width / this.columns, this.cellHeight()];
    text(canvas, `${this.ssd.dies} dies on ${this.ssd.channels} channels; a dot is a waiting read`, 0, 12, ink.faint, width);
    for (let die = 0; die < this.ssd.dies; die++) {
      const [x, y] = [(die % this.columns) * across, 20 + Math.floor(die / this.columns) * down];
      bar(canvas, x + 1, y + 1, across - 3, down - 3, ink.raised, 1);
      const task = now.get(die);
      if (task) {
        const share = (at_ns - task.from_ns) / (task.to_ns - task.from_ns);
        bar(canvas, x + 1, y + 1, across - 3, down - 3, colourOf(task.does, ink), 0.3);
        bar(canvas, x + 1, y + 1, (across - 3) * share, down - 3, colourOf(task.does, ink), 0.9);
        if (across > 74 && down > 18) {
          bar(canvas, x + 4, y + 4, Math.min(across - 10, 74), 14, ink.ground, 0.85);
          text(canvas, DOING[task.does], x + 7, y + 15, ink.ink, across - 14);
        }
      }
      canvas.strokeStyle = ink.faint;
      canvas.strokeRect(x + 1.5, y + 1.5, across - 4, down - 4);
      const here = waiting.filter((ask) => ask.die === die);
      here.slice(0, 8).forEach((ask, n) => {
        const isFollowed = this.isFollowed(ask.id, follow);
        dot(canvas, { x: x + across - 9 - 9 * n, y: y + down - 8 }, isFollowed ? 4.5 : 3, isFollowed ? ink.red : ink.ink);
      });
    }
  }

  /** Dies over time, and above each the reads that wait for it. */
  private strip({ canvas, ink }: Paint, width: number, at_ns: number, follow: number | null): void {
    const top = 20 + this.rows * this.cellHeight() + 10;
    const left = 44;
    const from_ns = at_ns - 0.65 * this.window_ns;
    const to_ns = from_ns + this.window_ns;
    const x = (ns: number) => left + ((Math.max(from_ns, Math.min(to_ns, ns)) - from_ns) / this.window_ns) * (width - left);
    const all = this.lanes.length === this.ssd.dies ? "dies" : `the ${this.lanes.length} dies with the longest queues,`;
    text(canvas, `${all} over time, ${ms(this.window_ns)} across; a line below is a waiting read`, 0, top + 12, ink.faint, width);
    const rowOf = new Map(this.lanes.map((die, n) => [die, top + 20 + 15 * n]));
    for (const [die, y] of rowOf) {
      bar(canvas, left, y, width - left, 13, ink.raised, 1);
      text(canvas, `die ${die}`, 0, y + 10, ink.faint, left - 4);
    }
    for (const task of this.story.tasks) {
      const y = rowOf.get(task.die);
      if (y === undefined || task.from_ns > to_ns || task.to_ns < from_ns) continue;
      bar(canvas, x(task.from_ns), y, Math.max(0.5, x(task.to_ns) - x(task.from_ns) - 0.5), 13, colourOf(task.does, ink), 0.9);
    }
    for (const ask of this.story.asks) {
      const y = rowOf.get(ask.die);
      if (y === undefined || ask.from_ns > to_ns || ask.taken_ns < from_ns || ask.from_ns === ask.taken_ns) continue;
      const isFollowed = this.isFollowed(ask.id, follow);
      const [from, to] = [x(ask.from_ns), x(Math.min(ask.taken_ns, this.story.end_ns))];
      bar(canvas, from, y + (isFollowed ? 8 : 10), Math.max(1, to - from), isFollowed ? 5 : 3, ink.ink, 1);
    }
    bar(canvas, x(at_ns), top + 20, width, 15 * this.lanes.length, ink.ground, 0.55);
    bar(canvas, x(at_ns), top + 20, 1.5, 15 * this.lanes.length, ink.link, 1);
  }

  private isFollowed(id: number | null, follow: number | null): boolean {
    return follow !== null && this.story.requestOf("command", id) === follow;
  }
}

function colourOf(does: DieWork, ink: Ink): string {
  return ink[DIE_COLOURS[does]];
}

export const DIE_COLOURS = {
  sense: "blue",
  send: "cyan",
  load: "yellow",
  program: "red",
  move: "green",
  "program-moved": "purple",
  erase: "faint",
  suspend: "link",
} as const;
const DOING: Record<DieWork, string> = { sense: "reading", send: "sending", load: "loading", program: "programming", move: "moving", "program-moved": "collecting", erase: "erasing", suspend: "suspending" };
