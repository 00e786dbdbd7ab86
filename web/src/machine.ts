/** The machine view: a system under load, event by event, alone or next to another system. */

import type { Answers } from "./answers";
import { fold, html } from "./dom";
import { ArrayView, COLOURS } from "./machine-array";
import { DiskView } from "./machine-disk";
import { DIE_COLOURS, SsdView } from "./machine-ssd";
import { countBy, countUpTo, DOES, ms, PURPOSES, Story, type Request, type Watched } from "./machine-story";
import { inkOf, type Ink, type View } from "./machine-view";
import { points, toHash, type Entry, type State } from "./state";

/** Maximum numbers of events and requests of a run. */
const EVENTS_MAX = 6000;
const REQUESTS = { disk: 300, array: 120, ssd: 500 } as const;
const SAID = 9;
const SETTLES_MS = 250;
const FRAME_MAX_MS = 100;
const POLICIES = ["fcfs", "sstf", "look", "c-look", "sptf"];
const SPEEDS = [1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9];
const TABLE_MAX = 300;

/** Part of the address for this view: the system next to the selected entry, a spare for a failure, and the time. */
interface Inside {
  /** System to compare with: empty, `policy=fcfs`, or `entry=1`. */
  beside: string;
  spare: boolean;
  follow: number | null;
  at_ms: number;
}

function inside(told: string): Inside {
  const parts = new Map(told.split(";").map((part) => [part.split(":")[0] ?? "", part.split(":")[1] ?? ""]));
  const follow = parts.get("follow");
  return { beside: parts.get("beside") ?? "", spare: parts.has("spare"), follow: follow ? Number(follow) : null, at_ms: Number(parts.get("at")) || 0 };
}

function told({ beside, spare, follow, at_ms }: Inside): string {
  const parts = [beside ? `beside:${beside}` : "", spare ? "spare" : "", follow === null ? "" : `follow:${follow}`, `at:${Number(at_ms.toFixed(4))}`];
  return parts.filter(Boolean).join(";");
}

interface Scene {
  name: string;
  says: string;
  system: string;
  values: Record<string, string>;
  at: number;
  beside?: string;
  spare?: boolean;
}
/** An SSD that is small enough to be full and to start garbage collection quickly. */
const SMALL_SSD = { "flash.channels": "4", "flash.dies_per_channel": "4", "flash.pages_per_block": "16", "capacity.size": "1GB" };
const SCENES: Scene[] = [
  {
    name: "why SPTF wins",
    says: "The same random reads in two orders: in first-come, first-served order the arm crosses the platter for each read.",
    system: "cheetah-x15-36lp",
    values: { policy: "sptf" },
    at: 16,
    beside: "policy=fcfs",
  },
  {
    name: "why depth 64 has a tail",
    says: "A request far from all others is passed over repeatedly. Follow the slowest.",
    system: "cheetah-x15-36lp",
    values: { policy: "sptf" },
    at: 64,
  },
  {
    name: "what a small write does to RAID 5",
    says: "One write of 4 KiB reads old data and old parity, and then writes both: four accesses in two phases.",
    system: "md-raid5-8x2tb",
    values: { read: "0", write_cache: "off" },
    at: 1,
  },
  {
    name: "full-stripe writes",
    says: "A full-stripe write needs no reads.",
    system: "md-raid5-8x2tb",
    values: { read: "0", size: "3584KiB", random: "0", write_cache: "off" },
    at: 1,
  },
  {
    name: "a rebuild",
    says: "After a drive failure, reads of its data and the rebuild read all other drives.",
    system: "md-raid5-8x2tb",
    values: { fail: "d0@0s" },
    at: 4,
    spare: true,
  },
  {
    name: "why reads wait in an SSD",
    says: "Reads wait for a die that programs, erases or collects. This drive is reduced to 16 dies with small blocks, 1 GB, and starts full.",
    system: "dc-s3700-400gb",
    values: { ...SMALL_SSD, state: "steady", read: "60", size: "16KiB" },
    at: 16,
  },
];

/** A system in the view. */
interface Shown {
  story: Story;
  view: View;
  canvas: HTMLCanvasElement;
  status: HTMLElement;
  log: HTMLElement;
  element: HTMLElement;
}

export class Machine {
  readonly element = html("section", { class: "machine", "aria-label": "Inside the machine" });
  private readonly open = html("button", { type: "button", class: "pin", "aria-expanded": "false" }, "see it work");
  private readonly scenes = html("span", { class: "scenes" });
  private readonly controls = html("div", { class: "transport" });
  private readonly stage = html("div", { class: "stage", tabindex: 0, role: "group", "aria-label": "The machine at work. Use Space to play and pause, the arrow keys to step between events, Home and End to jump to the ends." });
  private readonly says = html("p", { class: "note" });
  private readonly play = html("button", { type: "button", class: "pin" }, "play");
  private readonly scrubber = html("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": "Moment" });
  private readonly moment = html("output", { class: "moment" });
  private readonly speed = html("select", { "aria-label": "Speed" });
  private readonly beside = html("select", { id: "beside" });
  private readonly spare = html("input", { id: "spare", type: "checkbox" });
  private state: State | null = null;
  private answers: Answers | null = null;
  private shown: Shown[] = [];
  private key = "";
  private settles: ReturnType<typeof setTimeout> | undefined;
  private ink: Ink | null = null;
  private at_ns = 0;
  private per_s = 1e7;
  private isPlaying = false;
  private frame_ms = 0;
  private said_ms = 0;

  constructor() {
    const step = (label: string, words: string, does: () => void) => {
      const button = html("button", { type: "button", class: "pin", "aria-label": label }, words);
      button.addEventListener("click", does);
      return button;
    };
    this.controls.append(
      step("to the previous event", "◂", () => this.step(-1)),
      this.play,
      step("to the next event", "▸", () => this.step(1)),
      html("label", {}, "speed ", this.speed),
      html("label", { for: "beside" }, "compare with "),
      this.beside,
      html("span", { class: "spare", hidden: true }, this.spare, html("label", { for: "spare" }, " replace the failed drive by a spare")),
      step("follow the slowest", "follow the slowest", () => this.follow(this.shown[0]?.story.slowest()[0])),
      this.scrubber,
      this.moment,
    );
    this.element.append(html("div", { class: "systems" }, this.open, this.scenes), this.says, this.controls, this.stage);
    this.open.addEventListener("click", () => this.toggle());
    this.play.addEventListener("click", () => this.setPlaying(!this.isPlaying));
    this.scrubber.addEventListener("input", () => this.go((Number(this.scrubber.value) / 1000) * this.end_ns, true));
    this.speed.addEventListener("change", () => (this.per_s = Number(this.speed.value)));
    this.beside.addEventListener("change", () => this.set({ beside: this.beside.value, follow: null, at_ms: 0 }));
    this.spare.addEventListener("change", () => this.set({ spare: this.spare.checked, at_ms: 0 }));
    this.stage.addEventListener("keydown", (event) => this.pressed(event));
    addEventListener("resize", () => this.draw());
    this.hide();
  }

  /** Sets the state, which may have changed. */
  show(state: State, answers: Answers | null): void {
    [this.state, this.answers] = [state, answers];
    this.ink = null;
    this.listScenes(state);
    if (state.inside === null || !answers) return this.hide();
    const { beside, spare } = inside(state.inside);
    const key = JSON.stringify([state.entries, state.selected, state.load, state.at, beside, spare]);
    if (key === this.key) return this.draw();
    const isFirst = this.key === "";
    this.key = key;
    this.element.classList.add("open");
    this.open.setAttribute("aria-expanded", "true");
    this.open.textContent = "close";
    clearTimeout(this.settles);
    this.settles = setTimeout(() => void this.load(state, answers), isFirst ? 0 : SETTLES_MS);
  }

  private hide(): void {
    this.setPlaying(false);
    this.key = "";
    this.shown = [];
    this.stage.replaceChildren();
    this.says.textContent = "";
    this.element.classList.remove("open");
    this.open.setAttribute("aria-expanded", "false");
    this.open.textContent = "see it work";
  }

  private toggle(): void {
    if (!this.state) return;
    this.state.inside = this.state.inside === null ? told(inside("")) : null;
    this.remember();
    this.show(this.state, this.answers);
  }

  private remember(): void {
    if (this.state) history.replaceState(null, "", toHash(this.state));
  }

  private set(change: Partial<Inside>): void {
    if (!this.state) return;
    this.state.inside = told({ ...inside(this.state.inside ?? ""), ...change });
    this.remember();
    this.show(this.state, this.answers);
  }

  private get end_ns(): number {
    return Math.max(1, ...this.shown.map(({ story }) => story.end_ns));
  }

  /** Lists links to states that each show one effect well. */
  private listScenes(state: State): void {
    const of = toHash({ ...state, entries: [], inside: null });
    if (this.scenes.dataset.of === of) return;
    this.scenes.dataset.of = of;
    const links = SCENES.map(({ name, says, system, values, at, beside = "", spare = false }) => {
      const entry = { system, demand: "", values, pinned: false };
      const scene: State = { ...state, entries: [entry], selected: 0, load: "depth", at, inside: told({ beside, spare, follow: null, at_ms: 0 }) };
      return html("a", { href: toHash(scene), title: says }, name);
    });
    this.scenes.replaceChildren("or a scene: ", ...links);
  }

  private async load(state: State, answers: Answers): Promise<void> {
    const { key } = this;
    const wasPlaying = this.isPlaying;
    const { beside, spare, at_ms } = inside(state.inside ?? "");
    const entry = state.entries[state.selected] ?? state.entries[0];
    if (!entry) return;
    const other = besides(entry, state).find(({ value }) => value === beside)?.entry;
    try {
      const both = other ? [entry, other] : [entry];
      const watched = await Promise.all(both.map((one) => ask(one, state, answers, spare)));
      if (key !== this.key) return;
      this.shown = watched.map((told, n) => this.made(both[n] ?? entry, told));
    } catch (error) {
      if (key !== this.key) return;
      this.shown = [];
      this.says.textContent = (error as Error).message;
      this.stage.replaceChildren();
      return;
    }
    this.arrange(entry, state, beside, spare);
    this.go(Math.min(at_ms * 1e6, this.end_ns), false);
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.setPlaying(wasPlaying || (at_ms === 0 && !isStill));
  }

  private made(entry: Entry, watched: Watched): Shown {
    const story = new Story(watched);
    const view = viewOf(story);
    const canvas = html("canvas", { role: "img" });
    const [status, log] = [html("p", { class: "doing" }), html("ol", { class: "log", "aria-label": "What happens" })];
    const [head, said] = [html("h2", {}, nameOf(entry)), html("p", { class: "note" }, summary(story))];
    const table = fold({}, ["every request, slowest first"], () => [requests(story, (request) => this.follow(request))]);
    const element = html("div", { class: "one" }, head, said, canvas, legend(story), status, log, table);
    return { story, view, canvas, status, log, element };
  }

  private arrange(entry: Entry, state: State, beside: string, spare: boolean): void {
    const options = besides(entry, state).map(({ value, name }) => html("option", { value, selected: value === beside }, name));
    this.beside.replaceChildren(html("option", { value: "" }, "nothing"), ...options);
    this.spare.checked = spare;
    this.spare.parentElement?.toggleAttribute("hidden", !entry.values.fail);
    this.per_s = nearest(SPEEDS, Math.min(...this.shown.map(({ view }) => view.usual_ns_per_s)));
    this.speed.replaceChildren(...SPEEDS.map((speed) => html("option", { value: speed, selected: speed === this.per_s }, `${ms(speed).replace(/\.0+ /, " ")} per second`)));
    const load = state.load === "depth" ? `queue depth ${state.at}` : `${state.at} requests/s`;
    const values = JSON.stringify(entry.values);
    const scene = SCENES.find((one) => one.system === entry.system && one.at === state.at && JSON.stringify(one.values) === values);
    this.says.textContent = `${scene ? `${scene.says} ` : ""}${entry.demand || "Requests of one size"}, ${load}, in virtual time.`;
    this.stage.classList.toggle("two", this.shown.length > 1);
    this.stage.replaceChildren(...this.shown.map(({ element }) => element));
  }

  /** Highlights a request, and moves to its arrival. */
  private follow(request: Request | undefined): void {
    if (!request) return;
    this.set({ follow: request.number });
    this.go(request.from_ns, true);
  }

  private pressed(event: KeyboardEvent): void {
    if (event.target !== this.stage) return;
    const does: Record<string, () => void> = {
      " ": () => this.setPlaying(!this.isPlaying),
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      Home: () => this.go(0, true),
      End: () => this.go(this.end_ns, true),
    };
    const act = does[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  private setPlaying(is: boolean): void {
    const was = this.isPlaying;
    this.isPlaying = is && this.shown.length > 0;
    this.play.textContent = this.isPlaying ? "pause" : "play";
    if (this.isPlaying && this.at_ns >= this.end_ns) this.at_ns = 0;
    // Screen readers announce each event while stepping, not during playback.
    for (const { status } of this.shown) status.setAttribute("aria-live", this.isPlaying ? "off" : "polite");
    if (this.isPlaying && !was) {
      this.frame_ms = performance.now();
      requestAnimationFrame((now) => this.frame(now));
    } else if (was && !this.isPlaying && this.shown.length) this.keep();
  }

  private frame(now_ms: number): void {
    if (!this.isPlaying) return;
    const passed_ms = Math.max(0, Math.min(FRAME_MAX_MS, now_ms - this.frame_ms));
    this.frame_ms = now_ms;
    this.at_ns = Math.min(this.end_ns, this.at_ns + (passed_ms / 1000) * this.per_s);
    this.draw();
    if (this.at_ns >= this.end_ns) this.setPlaying(false);
    else requestAnimationFrame((next) => this.frame(next));
  }

  /** Moves to the next or previous time at which an event occurs in any of the systems. */
  private step(by: 1 | -1): void {
    this.setPlaying(false);
    const found = this.shown.flatMap(({ story: { times } }) => {
      const n = countUpTo(times, this.at_ns);
      const at = by > 0 ? times[n] : times[times[n - 1] === this.at_ns ? n - 2 : n - 1];
      return at === undefined ? [] : [at];
    });
    if (found.length) this.go(by > 0 ? Math.min(...found) : Math.max(...found), true);
  }

  /** Moves to a given time. */
  private go(at_ns: number, stops: boolean): void {
    this.at_ns = at_ns;
    if (stops) {
      this.setPlaying(false);
      this.keep();
    }
    this.said_ms = 0;
    this.draw();
  }

  private keep(): void {
    if (!this.state || this.state.inside === null) return;
    this.state.inside = told({ ...inside(this.state.inside), at_ms: this.at_ns / 1e6 });
    this.remember();
  }

  private draw(): void {
    if (!this.shown.length || this.state?.inside == null) return;
    const { follow } = inside(this.state.inside);
    this.ink ??= inkOf(this.element);
    const now = performance.now();
    // Update text less often than pictures, since sixty updates per second are unreadable.
    const says = !this.isPlaying || now - this.said_ms > 250;
    if (says) this.said_ms = now;
    for (const one of this.shown) {
      paint(one, this.ink, this.at_ns, follow);
      if (says) say(one, this.at_ns, follow, !this.isPlaying);
    }
    this.scrubber.value = String(Math.round((1000 * this.at_ns) / this.end_ns));
    if (says) {
      this.moment.textContent = `${ms(this.at_ns)} of ${ms(this.end_ns)}`;
      this.scrubber.setAttribute("aria-valuetext", this.moment.textContent);
    }
  }
}

function viewOf(story: Story): View {
  const device = story.device(0);
  if (story.isArray) return new ArrayView(story);
  if (device.is === "ssd") return new SsdView(story, device);
  if (device.is === "volume") throw new Error("The internals of a cloud volume are unknown.");
  if (device.actuators > 1) throw new Error("Drives with two arms are not drawn yet.");
  return new DiskView(story, device);
}

function summary(story: Story): string {
  const [slowest] = story.slowest();
  if (!slowest) return "No request completes in this view.";
  const passed = story.jobOf(slowest.number)?.passed_ns.length ?? 0;
  const longest = `request ${slowest.number} took longest, ${ms(slowest.to_ns - slowest.from_ns)}`;
  const over = passed ? `, and was passed over ${passed} times` : "";
  const cut = story.watched.is_cut ? ` Only the first ${EVENTS_MAX} events are shown.` : "";
  return `The first ${story.answered().length} requests from an idle start: ${ms(story.mean_ns)} on average; ${longest}${over}.${cut}`;
}

function paint({ canvas, view }: Shown, ink: Ink, at_ns: number, follow: number | null): void {
  const width = canvas.parentElement?.clientWidth ?? 0;
  if (!width) return;
  const height = view.height(width);
  const dense = devicePixelRatio || 1;
  const [across, down] = [Math.round(width * dense), Math.round(height * dense)];
  if (canvas.width !== across || canvas.height !== down) {
    [canvas.width, canvas.height] = [across, down];
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(dense, 0, 0, dense, 0, 0);
  context.clearRect(0, 0, width, height);
  view.draw({ canvas: context, ink }, width, at_ns, follow);
}

/** Updates the description of the visible state and the last event. */
function say({ story, view, canvas, status, log }: Shown, at_ns: number, follow: number | null, isStill: boolean): void {
  const words = `${ms(at_ns)}: ${view.describe(at_ns, follow)}`;
  if (status.textContent !== words) status.textContent = words;
  if (isStill || !canvas.hasAttribute("aria-label")) canvas.setAttribute("aria-label", words);
  const count = countBy(story.events, (event) => event.at_ns, at_ns);
  const events = story.events.slice(Math.max(0, count - SAID), count);
  const key = `${count} ${events.at(-1)?.at_ns === at_ns}`;
  if (log.dataset.of === key) return;
  log.dataset.of = key;
  const lines = events.map((event) => {
    const when = html("span", { class: "when" }, `${(event.at_ns / 1e6).toFixed(4)} ms`);
    return html("li", event.at_ns === at_ns ? { class: "now" } : {}, when, ` ${story.say(event)}`);
  });
  log.replaceChildren(...lines);
}

/** Returns the systems to compare an entry with: itself with another scheduling policy, and the other entries. */
function besides(entry: Entry, state: State): { value: string; name: string; entry: Entry }[] {
  const ordered = POLICIES.filter((policy) => policy !== entry.values.policy).map((policy) => {
    const other = { ...entry, values: { ...entry.values, policy } };
    return { value: `policy=${policy}`, name: `same system, ${policy} order`, entry: other };
  });
  const others = state.entries.flatMap((other, n) => (other === entry ? [] : [{ value: `entry=${n}`, name: nameOf(other), entry: other }]));
  return [...ordered, ...others];
}

function nameOf({ system, values }: Entry): string {
  const changed = Object.entries(values).map(([field, value]) => `${field.split(".").at(-1)} ${value}`);
  return [system, ...(changed.length > 3 ? [`${changed.length} changes`] : changed)].join(", ");
}

async function ask(entry: Entry, state: State, answers: Answers, spare: boolean): Promise<Watched> {
  if (answers.traces.has(entry.demand)) throw new Error("the machine view needs a workload, not a trace");
  const asked = await answers.asked(entry, state);
  const { system } = asked;
  const many = system.blueprint.kind === "array" ? REQUESTS.array : system.stated.flash !== undefined ? REQUESTS.ssd : REQUESTS.disk;
  const point = points(entry, state, asked, [state.at], many);
  const told = await answers.engine.ask<Watched>({ ask: "chronicle", points: point, events_max: EVENTS_MAX, spare: spare && Boolean(entry.values.fail) });
  return told as Watched;
}

/** Returns the legend of the colours in use. */
function legend(story: Story): HTMLElement {
  const seen = (words: Record<string, string>, colours: Record<string, string>, used: string[]) => {
    const names = Object.keys(words).filter((name) => used.includes(name));
    return names.map((name) => html("li", {}, html("i", { style: `background: var(--${colours[name]})` }), words[name] ?? ""));
  };
  const jobs = story.jobs.flat();
  if (story.tasks.length) return html("ul", { class: "legend" }, ...seen(DOES, DIE_COLOURS, story.tasks.map(({ does }) => does)));
  if (!story.isArray) {
    const words = { read: "a read", write: "a write", destage: "a destage of the write cache", own: "background I/O of the drive" };
    const used = jobs.map(({ work, write }) => (work !== "command" ? work : write ? "write" : "read"));
    return html("ul", { class: "legend" }, ...seen(words, { read: "blue", write: "yellow", destage: "red", own: "purple" }, used));
  }
  const purposes = seen(PURPOSES, COLOURS, story.commands.map(({ purpose }) => purpose));
  const destages = seen({ destage: "a drive empties its write cache" }, { destage: "faint" }, jobs.map(({ work }) => work));
  return html("ul", { class: "legend" }, ...purposes, ...destages, html("li", {}, "reads are dashed, writes have an edge below"));
}

/** Returns a table of all requests with their times, slowest first. */
function requests(story: Story, follow: (request: Request) => void): HTMLElement {
  const isDisk = !story.isArray && !story.tasks.length;
  const figure = (ns: number) => (ns / 1e6).toFixed(3);
  const ofDisk = ["passed over", "seek ms", "rotation ms", "transfer ms"];
  const parts = (number: number) => {
    if (story.isArray) return [String(story.commands.filter(({ request }) => request === number).length)];
    const job = story.jobOf(number);
    if (!isDisk || !job?.isDone) return isDisk ? ofDisk.map(() => "") : [];
    const { passed_ns, seek_ns, rotation_ns, start_ns, end_ns } = job;
    return [String(passed_ns.length), ...[seek_ns, rotation_ns, end_ns - start_ns - seek_ns - rotation_ns].map(figure)];
  };
  const rows = story.slowest().slice(0, TABLE_MAX).map((request) => {
    const { number, kind, offset_bytes, from_ns, to_ns } = request;
    const followed = html("button", { type: "button", "aria-label": `follow request ${number}` }, `${number}`);
    followed.addEventListener("click", () => follow(request));
    const cells = [kind, (offset_bytes / 1e6).toFixed(1), figure(from_ns), ...parts(number), figure(to_ns - from_ns)];
    return html("tr", {}, html("td", {}, followed), ...cells.map((cell) => html("td", {}, cell)));
  });
  const heads = ["request", "kind", "at MB", "arrival (ms)", ...(isDisk ? ofDisk : story.isArray ? ["commands"] : []), "response ms"];
  const head = html("tr", {}, ...heads.map((words) => html("th", { scope: "col" }, words)));
  const table = html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows));
  return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Requests, slowest first" }, table);
}

function nearest(all: number[], to: number): number {
  return all.reduce((best, one) => (Math.abs(Math.log(one / to)) < Math.abs(Math.log(best / to)) ? one : best));
}
