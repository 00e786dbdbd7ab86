/** Events in a system, in order: the waiting times of requests, the actions of each part, and their descriptions. */

interface Told {
  at_ns: number;
}
type Kind = "read" | "write" | "trim" | "flush";
type Work = "command" | "destage" | "own";
export type Purpose = "data" | "parity" | "old" | "survivor" | "rebuild" | "upkeep";
export type DieWork = "sense" | "send" | "load" | "program" | "move" | "program-moved" | "erase" | "suspend";

/** As in crates/sim/src/chronicle.rs. */
export type Event = Told &
  (
    | { is: "arrives"; request: number; kind: Kind; offset_bytes: number; length_bytes: number; dirty_pages: number }
    | { is: "completes"; request: number; started_ns: number; dirty_pages: number }
    | { is: "command"; command: number; member: number; kind: Kind; offset_bytes: number; length_bytes: number; purpose: Purpose; request: number | null }
    | { is: "answers"; command: number }
    | { is: "fails"; member: number }
    | { is: "rebuilt"; member: number; done_bytes: number; of_bytes: number }
    | { is: "waits"; member: number; work: Work; id: number; cylinder: number; head: number; angle: number }
    | ({ is: "access"; member: number; work: Work; id: number } & Pass)
    | { is: "hit"; member: number; id: number }
    | { is: "cached"; member: number; id: number; dirty_sectors: number }
    | { is: "destaged"; member: number; dirty_sectors: number }
    | { is: "segment"; member: number; segment: number; from_block: number; to_block: number }
    | { is: "asks"; member: number; die: number; id: number | null }
    | { is: "die"; member: number; die: number; does: DieWork; ends_ns: number; id: number | null }
  );

/** Phases of a job of the arm: it seeks, waits for the sector, and transfers. */
interface Pass {
  write: boolean;
  from_cylinder: number;
  cylinder: number;
  head: number;
  angle: number;
  start_ns: number;
  seek_ns: number;
  rotation_ns: number;
  end_ns: number;
}

export interface Disk {
  is: "disk";
  name: string;
  cylinders: number;
  zones: [first_cylinder: number, sectors_per_track: number][];
  turn_ns: number;
  actuators: number;
  policy: string;
  sector_bytes: number;
  segments: number;
  segment_sectors: number;
  dirty_sectors_max: number;
}
export interface Ssd {
  is: "ssd";
  name: string;
  channels: number;
  dies: number;
  read_ns: number;
  program_ns: number;
  erase_ns: number;
}
type Device = Disk | Ssd | { is: "volume"; name: string };

/** As in crates/web/src/machine.rs. */
export interface Watched {
  machine: {
    devices: Device[];
    members: { name: string; device: number }[];
    groups: { level: string; chunk_bytes: number; members: number[]; spares: number[] }[];
    dirty_pages_max: number;
  };
  events: Event[];
  is_cut: boolean;
}

/** A request of the host; without an end time if it never completed. */
export interface Request {
  number: number;
  kind: Kind;
  offset_bytes: number;
  length_bytes: number;
  from_ns: number;
  to_ns: number;
}
/** A job of an arm, from the time at which it starts waiting. */
export interface Job extends Pass {
  member: number;
  work: Work;
  id: number;
  from_ns: number;
  /** Time at which the arm takes the job, or at which the job no longer needs the arm. */
  taken_ns: number;
  /** Times at which later jobs were served before this job. */
  passed_ns: number[];
  /** Whether the arm served the job. */
  isDone: boolean;
}
export interface Command {
  number: number;
  member: number;
  kind: Kind;
  purpose: Purpose;
  request: number | null;
  offset_bytes: number;
  from_ns: number;
  to_ns: number;
}
export interface Task {
  die: number;
  does: DieWork;
  from_ns: number;
  to_ns: number;
  id: number | null;
}
/** A read that waits for its die. */
export interface Ask {
  die: number;
  id: number | null;
  from_ns: number;
  taken_ns: number;
}
/** A value that changes in steps. */
export type Level = [at_ns: number, value: number][];

/** Returns the value of a level at a given time; `usual` before its first step. */
export function levelAt(level: Level, at_ns: number, usual = 0): number {
  return level[countBy(level, ([ns]) => ns, at_ns) - 1]?.[1] ?? usual;
}

/** Returns how many of the ascending `times` are at or before a given time. */
export function countUpTo(times: number[], at_ns: number): number {
  return countBy(times, (ns) => ns, at_ns);
}

/** Returns how many items, in order of their time, are at or before a given time. */
export function countBy<T>(all: T[], time: (one: T) => number, at_ns: number): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time(all[middle] as T) <= at_ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function ms(ns: number): string {
  return ns < 1e6 ? `${(ns / 1e3).toFixed(ns < 1e5 ? 1 : 0)} µs` : `${(ns / 1e6).toFixed(ns < 1e8 ? 2 : 1)} ms`;
}

/**
 * Returns whether an event is shown. Segments are omitted if their content is unchanged, or if they belong to a drive
 * of an array.
 */
function isNews(isArray: boolean): (event: Event) => boolean {
  const held = new Map<string, string>();
  return (event) => {
    if (event.is !== "segment" || isArray) return event.is !== "segment";
    const [key, now] = [`${event.member} ${event.segment}`, `${event.from_block} ${event.to_block}`];
    const was = held.get(key);
    held.set(key, now);
    return was !== now;
  };
}

export class Story {
  readonly events: Event[];
  /** Times at which an event occurs. */
  readonly times: number[];
  readonly requests: Request[] = [];
  /** Jobs by member. */
  readonly jobs: Job[][];
  readonly commands: Command[] = [];
  /** Only for SSDs, as are the following fields. */
  readonly tasks: Task[] = [];
  readonly asks: Ask[] = [];
  readonly fails = new Map<number, number>();
  readonly rebuilt: { member: number; of_bytes: number; level: Level } = { member: -1, of_bytes: 1, level: [] };
  readonly dirty: Level[];
  readonly dirtyPages: Level = [];
  readonly segments: { at_ns: number; member: number; segment: number; from_block: number; to_block: number }[] = [];
  readonly end_ns: number;

  constructor(readonly watched: Watched) {
    const { members } = watched.machine;
    // A spare that was added later is of the same kind as the first spare.
    const last = Math.max(...watched.events.map((event) => ("member" in event ? event.member : 0)));
    while (members.length <= last) members.push({ name: `d${members.length}`, device: members[0]?.device ?? 0 });
    this.events = watched.events.filter(isNews(this.isArray)).sort((one, other) => one.at_ns - other.at_ns);
    this.times = [...new Set(this.events.map(({ at_ns }) => at_ns))];
    this.jobs = watched.machine.members.map(() => []);
    this.dirty = watched.machine.members.map(() => []);
    const waiting: Job[][] = watched.machine.members.map(() => []);
    const running = new Map<number, Task>();
    const asked = new Map<number, Ask[]>();
    for (const event of this.events) this.take(event, waiting, running, asked);
    this.end_ns = this.times.at(-1) ?? 0;
  }

  private take(event: Event, waiting: Job[][], running: Map<number, Task>, asked: Map<number, Ask[]>): void {
    const { at_ns } = event;
    switch (event.is) {
      case "arrives": {
        const { kind, offset_bytes, length_bytes } = event;
        this.requests[event.request] = { number: event.request, kind, offset_bytes, length_bytes, from_ns: at_ns, to_ns: Infinity };
        this.dirtyPages.push([at_ns, event.dirty_pages]);
        return;
      }
      case "completes": {
        Object.assign(this.requests[event.request] ?? {}, { to_ns: at_ns });
        this.dirtyPages.push([at_ns, event.dirty_pages]);
        return;
      }
      case "command": {
        const { command, member, kind, purpose, request, offset_bytes } = event;
        this.commands[command] = { number: command, member, kind, purpose, request, offset_bytes, from_ns: at_ns, to_ns: Infinity };
        return;
      }
      case "answers":
        Object.assign(this.commands[event.command] ?? {}, { to_ns: at_ns });
        return;
      case "fails":
        this.fails.set(event.member, at_ns);
        // A failed member never answers; other members serve its commands.
        for (const command of this.commands) if (command.member === event.member) command.to_ns = Math.min(command.to_ns, at_ns);
        return;
      case "rebuilt":
        Object.assign(this.rebuilt, { member: event.member, of_bytes: event.of_bytes });
        this.rebuilt.level.push([at_ns, event.done_bytes]);
        return;
      case "waits":
      case "access":
      case "hit":
      case "cached":
      case "destaged":
        return this.arm(event, waiting);
      case "segment":
        this.segments.push(event);
        return;
      case "asks": {
        if (this.isArray) return;
        const ask = { die: event.die, id: event.id, from_ns: at_ns, taken_ns: Infinity };
        this.asks.push(ask);
        asked.set(event.die, [...(asked.get(event.die) ?? []), ask]);
        return;
      }
      case "die": {
        if (this.isArray) return;
        const before = running.get(event.die);
        if (before) before.to_ns = Math.min(before.to_ns, at_ns);
        if (event.does === "sense") Object.assign(asked.get(event.die)?.shift() ?? {}, { taken_ns: at_ns });
        const task = { die: event.die, does: event.does, from_ns: at_ns, to_ns: event.ends_ns, id: event.id };
        running.set(event.die, task);
        this.tasks.push(task);
      }
    }
  }

  private arm(event: Extract<Event, { is: "waits" | "access" | "hit" | "cached" | "destaged" }>, waiting: Job[][]): void {
    const { at_ns, member } = event;
    const queue = waiting[member] ?? [];
    if (event.is === "waits") {
      const { work, id, cylinder, head, angle } = event;
      const times = { from_ns: at_ns, taken_ns: Infinity, start_ns: Infinity, seek_ns: 0, rotation_ns: 0, end_ns: Infinity };
      const place = { from_cylinder: cylinder, cylinder, head, angle };
      const write = work === "destage" || (!this.isArray && this.requests[id]?.kind === "write");
      const job: Job = { ...times, ...place, write, member, work, id, passed_ns: [], isDone: false };
      queue.push(job);
      this.jobs[member]?.push(job);
      return;
    }
    if (event.is === "cached" || event.is === "destaged") this.dirty[member]?.push([at_ns, event.dirty_sectors]);
    if (event.is === "destaged") return;
    const work = event.is === "access" ? event.work : "command";
    const place = queue.findIndex((job) => job.work === work && job.id === event.id);
    const [waited] = place < 0 ? [] : queue.splice(place, 1);
    if (event.is !== "access") {
      if (waited) waited.taken_ns = at_ns;
      return;
    }
    for (const older of queue.slice(0, Math.max(0, place))) older.passed_ns.push(at_ns);
    const job = waited ?? { member, work, id: event.id, from_ns: at_ns, passed_ns: [] };
    Object.assign(job, event, { taken_ns: at_ns, isDone: true, from_ns: job.from_ns });
    if (!waited) this.jobs[member]?.push(job as Job);
  }

  get isArray(): boolean {
    return this.watched.machine.groups.length > 0;
  }

  /** Returns the device of a member; a single drive is its own member. */
  device(member: number): Device {
    const { devices, members } = this.watched.machine;
    return devices[members[member]?.device ?? 0] as Device;
  }

  name(member: number): string {
    return this.watched.machine.members[member]?.name ?? `d${member}`;
  }

  /** Returns the host request that a member's command serves. */
  requestOf(work: Work, id: number | null): number | null {
    if (work !== "command" || id === null) return null;
    return this.isArray ? (this.commands[id]?.request ?? null) : id;
  }

  answered(): Request[] {
    return this.requests.filter(({ to_ns }) => to_ns < Infinity);
  }

  /** Mean response time of the answered requests in ns. */
  get mean_ns(): number {
    const answered = this.answered();
    return answered.reduce((sum, { from_ns, to_ns }) => sum + to_ns - from_ns, 0) / Math.max(1, answered.length);
  }

  /** Returns the job of a single drive's arm for a request. */
  jobOf(request: number): Job | undefined {
    return this.isArray ? undefined : this.jobs[0]?.find((job) => job.work === "command" && job.id === request);
  }

  /** Returns the requests, slowest first. */
  slowest(): Request[] {
    return this.answered().sort((one, other) => other.to_ns - other.from_ns - (one.to_ns - one.from_ns));
  }

  /** Describes an event in words. */
  say(event: Event): string {
    const words = this.words(event);
    // Sentences that start with a member's name keep its spelling.
    return /^\S+: /.test(words) ? words : words.charAt(0).toUpperCase() + words.slice(1);
  }

  private words(event: Event): string {
    const at = "member" in event && this.isArray ? `${this.name(event.member)}: ` : "";
    const command = (id: number) => (this.isArray ? `command ${id}${this.forRequest(id)}` : `request ${id}`);
    const who = (work: Work, id: number) => (work === "command" ? command(id) : work === "destage" ? "a destage" : "background I/O");
    switch (event.is) {
      case "arrives":
        return `request ${event.request} arrives: ${event.kind} ${event.length_bytes / 1024} KiB at ${(event.offset_bytes / 1e6).toFixed(1)} MB.`;
      case "completes":
        return `request ${event.request} is answered, ${ms(event.at_ns - (this.requests[event.request]?.from_ns ?? 0))} after its arrival.`;
      case "command": {
        const of = event.request !== null ? ` for request ${event.request}` : event.purpose === "rebuild" || event.purpose === "upkeep" ? "" : " for the cache";
        return `${at}command ${event.command}, ${event.kind} ${PURPOSES[event.purpose]}${of}.`;
      }
      case "answers": {
        const command = this.commands[event.command];
        return `${this.name(command?.member ?? 0)}: command ${event.command} is done${this.forRequest(event.command)}.`;
      }
      case "fails":
        return `${this.name(event.member)} fails.`;
      case "rebuilt":
        return `${this.name(event.member)}: ${(event.done_bytes / 1e6).toFixed(1)} MB rebuilt.`;
      case "waits":
        return `${at}${who(event.work, event.id)} waits for the arm, at cylinder ${event.cylinder}.`;
      case "access": {
        const transfer_ns = event.end_ns - event.start_ns - event.seek_ns - event.rotation_ns;
        const way = `${ms(event.seek_ns)} from cylinder ${event.from_cylinder} to ${event.cylinder}`;
        return `${at}the arm takes ${who(event.work, event.id)}: ${way}, ${ms(event.rotation_ns)} until the sector arrives, ${ms(transfer_ns)} of transfer.`;
      }
      case "hit":
        return `${at}${who("command", event.id)} is in the buffer.`;
      case "cached":
        return `${at}the write cache takes ${who("command", event.id)}; ${event.dirty_sectors} sectors are dirty.`;
      case "destaged":
        return `${at}a destage is on the media; ${event.dirty_sectors} sectors are dirty.`;
      case "segment":
        return `${at}segment ${event.segment} of the buffer holds ${event.to_block - event.from_block} sectors.`;
      case "asks":
        return `${at}die ${event.die} receives a read${event.id === null ? "" : ` for ${who("command", event.id)}`}.`;
      case "die":
        return `${at}die ${event.die} ${DOES[event.does]}${event.id === null ? "" : ` for ${who("command", event.id)}`}, for ${ms(event.ends_ns - event.at_ns)}.`;
    }
  }

  private forRequest(command: number): string {
    const request = this.commands[command]?.request ?? null;
    return request === null ? "" : `, for request ${request}`;
  }
}

export const PURPOSES: Record<Purpose, string> = {
  data: "data",
  parity: "parity",
  old: "old data",
  survivor: "the rest of the stripe",
  rebuild: "for the rebuild",
  upkeep: "for array maintenance",
};
export const DOES: Record<DieWork, string> = {
  sense: "reads",
  send: "sends over its channel",
  load: "receives data",
  program: "programs",
  move: "moves data, for collection",
  "program-moved": "programs moved data, for collection",
  erase: "erases a block, for collection",
  suspend: "suspends its program or erase",
};
