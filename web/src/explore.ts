/** The explorer: systems under workloads, simulated in the page while their values are dragged. */

import { Answers, type Curve } from "./answers";
import { Chart } from "./chart";
import * as controls from "./controls";
import { html } from "./dom";
import { taken } from "./dropped";
import { Engine, type Catalogue, type Named, type Stated } from "./engine";
import type { Prices } from "./prices";
import type { Series } from "./report";
import { Machine } from "./machine";
import { figure } from "./scale";
import { busy, cost, lookOf, nearestLoad, said, saturation, tail, throughput } from "./shown";
import { command, FILE, fromHash, isOfDemand, loads, nameOf, SHOWN, toHash, type Entry, type State } from "./state";

/** The input of the page. */
interface Given {
  version: string;
  entries: { system: string; demand: string }[];
  /** The user's files, which are not in the catalogue. */
  files: Record<string, Stated>;
  words: controls.Words;
  prices: Prices;
}

const GIVEN = JSON.parse(document.getElementById("explore")?.textContent ?? "") as Given;
const FIRST: State = {
  entries: GIVEN.entries.map(({ system, demand }) => ({ system, demand, values: {}, pinned: false })),
  selected: 0,
  load: "depth",
  most: 1000,
  loads: [],
  at: 16,
  requests: 3000,
  shows: "mean",
  inside: null,
};
const REQUESTS = [1000, 3000, 10_000, 30_000, 100_000];
const ENTRIES_MAX = 6;
const SHOWN_AS = { mean: "mean", p50: "median", p90: "90th percentile", p99: "99th percentile", p999: "99.9th percentile" };

export class Explorer {
  private curves: (Curve | null)[] = [];
  private dropped: Series[] = [];
  private isDue = false;
  /** Every point of the state has its full number of requests. */
  private isComputed = false;
  /** Work that waits until dragging ends. */
  private later: ReturnType<typeof setTimeout> | undefined;
  private catalogue: Catalogue | null = null;
  private answers: Answers | null = null;
  private readonly main: HTMLElement;
  private readonly line = html("p", { class: "answer", role: "status", "aria-live": "polite" }, "The simulator is being unpacked.");
  private readonly chips = html("span", { class: "chips", role: "group", "aria-label": "Systems" });
  private readonly systems = html("div", { class: "systems" });
  private readonly panel = html("form", { class: "panel", "aria-label": "What can be varied" });
  /** Stated figures of the system that no longer hold. */
  private readonly figuresDropped = html("p", { role: "status" });
  private readonly details = html("div", { class: "details" });
  private readonly reproduced = html("section", { class: "reproduced" });
  private readonly machine = new Machine();
  private readonly charts = [
    new Chart("Latency over throughput", (width, view) => saturation(this.state, this.curves, this.dropped, width, view)),
    new Chart("Throughput over load", (width, view) => throughput(this.state, this.curves, width, view)),
    new Chart("Latency at the selected load", (width, view) => tail(this.state, this.curves, width, view)),
  ];

  /** In an element of the page; by default the address selects the first state. */
  constructor(
    private readonly root: HTMLElement,
    private state = fromHash(location.hash, FIRST),
  ) {
    this.main = html(root === document.body ? "main" : "div", { class: "explorer" });
  }

  /** Shows another state. */
  show(state: State): void {
    this.state = state;
    if (!this.answers) return;
    this.controls();
    this.changed();
  }

  async start(): Promise<void> {
    const titles = ["Latency over throughput", "Throughput over load", "Latency at one load"];
    const [first = null, ...others] = this.charts.map((chart, n) =>
      html("figure", { class: n ? "" : "first" }, html("figcaption", {}, titles[n] ?? ""), chart.element),
    );
    const isPage = this.root === document.body;
    const figures = html("div", { class: "figures" }, ...others);
    const parts = [this.systems, this.line, this.machine.element, first, this.panel, figures, this.details, this.reproduced];
    this.main.append(...parts.filter((part) => part !== null));
    const about =
      `headstack ${GIVEN.version}. The simulation runs in this page; no data leave it. Drop a description or faults (TOML), ` +
      "a trace of up to 4 MB in any text format of headstack trace, or results of headstack or fio (JSON) here.";
    this.root.append(
      html(isPage ? "header" : "div", {}, html(isPage ? "h1" : "h2", {}, "Explore storage")),
      this.main,
      html(isPage ? "footer" : "p", {}, about),
    );
    this.panel.addEventListener("submit", (event) => event.preventDefault());
    this.listen();
    try {
      const engine = await Engine.start(document.getElementById("engine")?.textContent ?? "");
      this.answers = new Answers(engine, new Map(Object.entries(GIVEN.files)));
      this.changed();
      // The first curve comes before everything else.
      this.catalogue = await engine.ask<Catalogue>({ ask: "catalogue" }, 1);
      this.controls();
    } catch (error) {
      this.line.textContent = `The simulator cannot run in this browser: ${(error as Error).message}`;
    }
  }

  private listen(): void {
    addEventListener("hashchange", (event) => {
      // An answer that arrives between a click and this event has put the address of the old state into location.hash.
      const asked = new URL(event.newURL).hash;
      if (!this.root.isConnected || asked === toHash(this.state)) return;
      this.state = fromHash(asked, this.state);
      this.controls();
      this.changed();
    });
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      if (!this.root.isConnected) return;
      for (const file of event.dataTransfer?.files ?? []) void this.drop(file);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  private async drop(file: File): Promise<void> {
    if (!this.answers) return;
    try {
      const { answers } = this;
      const found = await taken(file, answers.engine);
      if ("series" in found) this.dropped = [...this.dropped, ...found.series];
      else if ("faults" in found) {
        answers.take(answers.schedules, file.name, found.faults);
        this.entry.values.faults = file.name;
      } else if ("trace" in found) {
        answers.take(answers.traces, file.name, found.trace);
        this.put(file.name);
      } else {
        answers.take(answers.files, file.name, found.stated);
        if (isDemand(found.stated)) this.put(file.name);
        else this.add(file.name);
      }
      this.controls();
      this.changed();
    } catch (error) {
      this.line.textContent = `${file.name}: ${(error as Error).message}`;
    }
  }

  private get entry(): Entry {
    return this.state.entries[this.state.selected] ?? (this.state.entries[0] as Entry);
  }

  private unpinned(): Entry[] {
    return this.state.entries.filter((entry) => !entry.pinned);
  }

  /** Puts all that is not pinned under another workload. */
  private put(demand: string): void {
    for (const one of this.entry.pinned ? [this.entry] : this.unpinned()) {
      Object.assign(one, { demand, values: { ...withoutDemand(one.values), ...this.device(demand) } });
    }
  }

  /** The first device of a trace with several, since their addresses overlap. */
  private device(demand: string): Record<string, string> {
    const trace = this.answers?.traces.get(demand);
    const [first] = trace && trace.devices.length > 1 ? controls.sayable(trace) : [];
    return first === undefined ? {} : { device: first };
  }

  private add(system: string): void {
    const { demand, values } = this.entry;
    const kept = Object.entries(values).filter(([field]) => isOfDemand(field));
    if (this.state.entries.length >= ENTRIES_MAX) this.state.entries.pop();
    this.state.entries.push({ system, demand, values: Object.fromEntries(kept), pinned: false });
    this.state.selected = this.state.entries.length - 1;
  }

  /** Computes new curves of the state, and shows them as they arrive. */
  private changed(): void {
    this.isComputed = false;
    for (const part of [this.main, this.reproduced]) part.setAttribute("aria-busy", "true");
    this.settle();
    const wanted = this.answers?.want(this.state, (curves) => {
      this.curves = curves;
      this.redraw();
    });
    void wanted?.then((isAll) => {
      if (isAll) this.redraw();
      this.isComputed ||= isAll;
    });
  }

  /** Redraws at the next frame with all points received so far. */
  private redraw(): void {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      for (const chart of this.charts) chart.redraw();
      const curve = this.curves[this.state.selected] ?? null;
      this.line.textContent = said(this.entry, this.state, curve);
      this.machine.show(this.state, this.answers);
      const stated = (system: string) => this.answers?.seen.get(system) ?? null;
      this.details.replaceChildren(busy(this.state, curve), cost(this.state, this.curves, GIVEN.prices, stated));
      if (this.isComputed) this.main.setAttribute("aria-busy", "false");
    });
    this.settle();
  }

  /** The address and the command, once nothing has changed for a while: a browser takes its time over an address. */
  private settle(): void {
    clearTimeout(this.later);
    const later = setTimeout(() => {
      if (!this.root.isConnected) return;
      history.replaceState(null, "", toHash(this.state));
      void Promise.all([this.showDropped(), this.reproduce()]).then(() => {
        // Not if a curve came meanwhile: the command follows from it, and is written by a later call.
        if (this.isComputed && later === this.later) this.reproduced.setAttribute("aria-busy", "false");
      });
    }, 200);
    this.later = later;
  }

  /** Shows the stated figures that changes of the selected system drop. */
  private async showDropped(): Promise<void> {
    const { answers, entry } = this;
    const told = await answers?.droppedFigures(entry).catch(() => null);
    if (entry !== this.entry) return;
    this.figuresDropped.textContent = told ?? "";
    this.figuresDropped.className = told ? "note" : "";
  }

  /** The command for the selected curve. */
  private async reproduce(): Promise<void> {
    const { answers, entry, state } = this;
    if (!answers) return;
    const load = this.curves[state.selected]?.load ?? state.load;
    const told = command(entry, state, load);
    if (this.reproduced.dataset.of === told) return;
    this.reproduced.dataset.of = told;
    const [system, faults] = await Promise.all([answers.toml(entry), answers.faults(entry)].map((text) => text.catch(() => null)));
    if (this.reproduced.dataset.of !== told) return;
    const files = [
      ...(system ? [[FILE, "The system as a file", system]] : []),
      ...(faults ? [[entry.values.faults, "The faults as a file", faults]] : []),
    ];
    const copied = html("button", { type: "button", class: "copy" }, "copy");
    copied.addEventListener("click", () => void navigator.clipboard.writeText(told.replaceAll(" \\\n  ", " ")));
    const opened = [...this.reproduced.querySelectorAll("details")].map(({ open }) => open);
    this.reproduced.querySelectorAll<HTMLAnchorElement>("a[download]").forEach((link) => URL.revokeObjectURL(link.href));
    const shown = files.map(([name = "", title = "", text = ""], n) => {
      const href = URL.createObjectURL(new Blob([text], { type: "application/toml" }));
      const link = html("p", {}, html("a", { download: name, href }, name));
      return html("details", { open: opened[n] ?? false }, html("summary", {}, title), link, html("pre", { tabindex: 0 }, text));
    });
    this.reproduced.replaceChildren(html("h2", {}, "Reproduce these numbers"), html("pre", { class: "command", tabindex: 0 }, told), copied, ...shown);
  }

  private controls(): void {
    const active = document.activeElement?.getAttribute("data-control");
    this.listSystems();
    this.offer();
    void this.fill().then(() => active && this.panel.querySelector<HTMLElement>(`[data-control="${active}"]`)?.focus());
  }

  private listSystems(): void {
    const { state } = this;
    const chips = state.entries.map((entry, n) => {
      const name = html("button", { type: "button", "aria-pressed": String(n === state.selected), class: "name" }, nameOf(entry));
      name.addEventListener("click", () => {
        state.selected = n;
        this.controls();
        this.changed();
      });
      const leave = html("button", { type: "button", "aria-label": `remove ${entry.system}` }, "×");
      leave.addEventListener("click", () => {
        state.entries.splice(n, 1);
        state.selected = Math.min(state.selected, state.entries.length - 1);
        this.controls();
        this.changed();
      });
      const { colour } = lookOf(state, n);
      return html("span", { class: `chip ${colour}` }, name, state.entries.length > 1 ? leave : null);
    });
    this.chips.replaceChildren(...chips);
  }

  /** The control to add systems. */
  private offer(): void {
    const { state } = this;
    const pin = html("button", { type: "button", class: "pin" }, "pin");
    pin.title = "Pin this curve while you change the other";
    pin.addEventListener("click", () => {
      if (state.entries.length >= ENTRIES_MAX) return;
      state.entries.push({ ...this.entry, values: { ...this.entry.values }, pinned: true });
      this.controls();
      this.changed();
    });
    const pick = html("select", { "aria-label": "Add a system" }, html("option", { value: "" }, "add a system"), ...this.groups(this.systemGroups()));
    pick.addEventListener("change", () => {
      this.add(pick.value);
      this.controls();
      this.changed();
    });
    this.systems.replaceChildren(this.chips, pin, pick);
  }

  private systemGroups(): [string, Named[]][] {
    const { disks = [], ssds = [], arrays = [], volumes = [] } = this.catalogue ?? {};
    const files = [...(this.answers?.files ?? [])].filter(([, { blueprint }]) => ["drive", "array"].includes(blueprint.kind));
    return [["files", files.map(([name]): Named => [name, name])], ["arrays", arrays], ["disks", disks], ["solid-state drives", ssds], ["cloud volumes", volumes]];
  }

  private groups(groups: [string, Named[]][], chosen = ""): HTMLElement[] {
    return groups
      .filter(([, named]) => named.length)
      .map(([label, named]) => html("optgroup", { label }, ...named.map(([id, name]) => html("option", { value: id, selected: id === chosen }, name === id ? id : `${name} (${id})`))));
  }

  /** The controls of the selected entry. */
  private async fill(): Promise<void> {
    const { answers, catalogue, entry, state } = this;
    if (!answers || !catalogue) return;
    const trace = answers.traces.get(entry.demand);
    const of = entry.demand && !trace ? entry.demand : null;
    const all = Promise.all([answers.stated(entry.system), of ? answers.stated(of) : null, of ? answers.whyFixed(of) : null]);
    const [system, demand, fixed] = await all.catch(() => [null, null, null]);
    if (entry !== this.entry) return;
    const drives = [...catalogue.disks, ...catalogue.ssds].map(([id]) => id);
    const set = (of: Entry[]): controls.Change => (values, decides) => {
      for (const one of of) {
        for (const [field, value] of Object.entries(values)) {
          if (value === null || value === "") delete one.values[field];
          else one.values[field] = value;
        }
      }
      if (decides) this.controls();
      else this.listSystems();
      this.changed();
    };
    const unset = { all: [], notes: [] };
    const ofSystem = system ? controls.ofSystem(system, GIVEN.words, drives, entry.values.faults, [...answers.schedules.keys()]) : unset;
    const ofDemand = trace ? controls.ofTrace(trace) : demand ? controls.ofDemand(demand, fixed) : entry.demand ? unset : controls.ofOneSize();
    const rows = ({ all, notes }: controls.Controls, of: Entry[]) => [
      ...all.map((one) => controls.shown(one, entry, set(of))),
      ...notes.map((note) => html("p", { class: "note" }, note)),
    ];
    const groups = [
      html("fieldset", {}, html("legend", {}, "Load"), ...this.loadControls()),
      html("fieldset", {}, html("legend", {}, "Workload"), this.workload(), ...rows(ofDemand, entry.pinned ? [entry] : this.unpinned())),
      html("fieldset", {}, html("legend", {}, "System"), ...rows(ofSystem, [entry]), this.figuresDropped),
    ];
    this.panel.replaceChildren(...groups);
    this.panel.querySelectorAll("input, select").forEach((one, n) => one.setAttribute("data-control", String(n)));
    if (!state.entries.includes(entry)) this.controls();
  }

  private workload(): HTMLElement {
    const { catalogue, entry } = this;
    const files = [...(this.answers?.files ?? [])].filter(([, stated]) => isDemand(stated)).map(([name]) => name);
    const named = (names: Iterable<string>) => [...names].map((name): Named => [name, name]);
    const groups: [string, Named[]][] = [
      ["files", named(files)],
      ["recordings", named(this.answers?.traces.keys() ?? [])],
      ["workloads", catalogue?.workloads ?? []],
      ["scenarios", catalogue?.scenarios ?? []],
    ];
    const pick = html("select", { id: "workload" }, html("option", { value: "" }, "requests of one size"), ...this.groups(groups, entry.demand));
    pick.addEventListener("change", () => {
      this.put(pick.value);
      this.controls();
      this.changed();
    });
    return html("div", { class: "control" }, html("label", { for: "workload" }, "workload"), pick);
  }

  private loadControls(): HTMLElement[] {
    const { state } = this;
    const choice = (id: string, label: string, choices: [string, string][], now: string, chosen: (value: string) => void) => {
      const pick = html("select", { id }, ...choices.map(([value, name]) => html("option", { value, selected: value === now }, name)));
      pick.addEventListener("change", () => (chosen(pick.value), this.controls(), this.changed()));
      return html("div", { class: "control" }, html("label", { for: id }, label), pick);
    };
    const all = loads(state);
    const at = html("input", { id: "at", type: "range", min: 0, max: all.length - 1, step: 1 });
    at.value = String(nearestLoad(all, state.at));
    const shown = html("output", { for: "at" }, String(all[Number(at.value)]));
    at.addEventListener("input", () => {
      state.at = all[Number(at.value)] ?? state.at;
      shown.textContent = String(state.at);
      at.setAttribute("aria-valuetext", shown.textContent);
      this.redraw();
    });
    const lengths = [...new Set([...REQUESTS, state.requests])].sort((one, other) => one - other);
    const counts = lengths.map((count): [string, string] => [String(count), figure(count)]);
    const unit = state.load === "depth" ? "requests outstanding" : "requests a second";
    const most = html("input", { id: "most", type: "range", min: 10, max: 60, step: 1 });
    most.value = String(Math.round(10 * Math.log10(state.most)));
    const mostShown = html("output", { for: "most" }, String(state.most));
    most.addEventListener("input", () => {
      state.loads = [];
      state.most = Number((10 ** (Number(most.value) / 10)).toPrecision(2));
      mostShown.textContent = String(state.most);
      this.changed();
    });
    return [
      choice("load", "grows by", [["depth", "requests outstanding"], ["rate", "requests a second"]], state.load, (value) => Object.assign(state, { load: value === "rate" ? "rate" : "depth", loads: [] })),
      ...(state.load === "rate" ? [html("div", { class: "control" }, html("label", { for: "most" }, "up to"), mostShown, most)] : []),
      html("div", { class: "control" }, html("label", { for: "at" }, `look at ${unit}`), shown, at),
      choice("shows", "latency", SHOWN.map((one) => [one, SHOWN_AS[one]]), state.shows, (value) => (state.shows = SHOWN.find((one) => one === value) ?? "mean")),
      choice("requests", "requests a point", counts, String(state.requests), (value) => (state.requests = Number(value))),
    ];
  }
}

function isDemand({ blueprint }: Stated): boolean {
  return ["workload", "scenario"].includes(blueprint.kind);
}

function withoutDemand(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([field]) => !isOfDemand(field)));
}
