/** The state of the explorer, as stored in its address: systems under workloads, each with its own values. */

import type { Stated } from "./engine";

/** A system under a workload, with the changes of both. */
export interface Entry {
  system: string;
  /** Name of the workload; empty for requests of one size, which options describe. */
  demand: string;
  /** Changed fields of the system's or workload's file and options of runs, as in `headstack sweep --vary`. */
  values: Record<string, string>;
  /** Whether the entry remains unchanged while others change. */
  pinned: boolean;
}

export interface State {
  entries: Entry[];
  selected: number;
  /** Load parameter along a curve: queue depth, or requests/s up to the maximum. */
  load: "depth" | "rate";
  most: number;
  /** Values of the load along curves; empty for the default values. */
  loads: number[];
  /** Load whose figures are shown. */
  at: number;
  /** Number of requests per point. */
  requests: number;
  shows: Shown;
  /** State of the machine view (machine.ts); `null` if it is closed. */
  inside: string | null;
}

export const SHOWN = ["mean", "p50", "p90", "p99", "p999"] as const;
export type Shown = (typeof SHOWN)[number];

const DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const SHARES = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

/** Returns the values of the load along a curve. */
export function loads(state: State): number[] {
  if (state.loads.length) return state.loads;
  return state.load === "depth" ? DEPTHS : SHARES.map((share) => Number((share * state.most).toPrecision(3)));
}

/**
 * Load parameter along the curve of an entry: queue depth or requests/s; for a scenario, its clients, or `fixed` if it
 * has no number of clients; for a trace, the queue depth (`asap`), or `timed` if it is replayed as recorded.
 */
export type Load = "depth" | "rate" | "clients" | "fixed" | "asap" | "timed";

/** Returns the values of the load along the curve of an entry; a fixed load is a single point. */
export function loadsOf(load: Load, state: State): number[] {
  if (load === "fixed" || load === "timed") return [1];
  return load === "clients" && !state.loads.length ? DEPTHS : loads(state);
}

/** Returns the loads that are computed first. */
export function coarse(all: number[]): number[] {
  return all.filter((_, n) => n % 2 === 0 && n < all.length - 1);
}

/** What a key belongs to: a system, a workload, or the options of a run. */
export type Kind = "system" | "demand" | "option";

const CHANGES = ["drives", "drive", "level", "usable"];

export function kindOf(field: string): Kind {
  if (CHANGES.includes(field)) return "system";
  if (/^(lines|streams)\[/.test(field)) return "demand";
  return /[.[]/.test(field) ? "system" : "option";
}

/** Keys of the run length, only one of which is used. */
const LENGTHS = ["requests", "time", "confidence"];

/** Whether an entry sets its own run length. */
function hasLength({ values }: Entry): boolean {
  return LENGTHS.some((length) => length in values);
}

/** Returns the option that increases the load; empty if the load is fixed. */
function optionOf(load: Load): string[] {
  if (load === "fixed" || load === "timed") return [];
  return [load === "rate" ? "rate" : "depth"];
}

/** The engine's question for an entry: its system, its workload, and its faults. */
export interface Asked {
  system: Stated;
  demand: Stated | null;
  faults: unknown;
  load: Load;
}

/**
 * Returns the points of a curve in the form of a sweep's chunk (crates/catalogue/src/points.rs). Each point has
 * `requests` requests or, if that is `null`, the run length that the entry sets.
 */
export function points(entry: Entry, state: State, { system, demand, faults, load }: Asked, at: number[], requests: number | null): object {
  const isOwn = requests === null && hasLength(entry);
  const values = Object.entries(entry.values).filter(([field]) => isOwn || !LENGTHS.includes(field));
  const length = isOwn ? [] : [["requests", String(requests ?? state.requests)] as const];
  const fields = [...values.map(([field]) => field), ...optionOf(load), ...length.map(([field]) => field)];
  return {
    system: { name: entry.system, part: null, blueprint: system.blueprint },
    demand: demand && { blueprint: demand.blueprint },
    fields,
    kinds: fields.map(kindOf),
    columns: fields,
    units: fields.map(() => null),
    points: at.map((value) => [...values.map(([, text]) => text), ...optionOf(load).map(() => String(value)), ...length.map(([, text]) => text)]),
    ...(faults ? { faults: { [entry.values.faults ?? ""]: faults } } : {}),
  };
}

/** Returns the changes of an entry's system file, in the order of its values. */
export function changesOf({ values }: Entry): [field: string, value: string][] {
  return Object.entries(values).filter(([field]) => kindOf(field) === "system");
}

/** A trace dropped on the page. */
export interface Trace {
  file: string;
  text: string;
  format: string;
  requests: number;
  seconds: number;
  /** Devices in the trace. */
  devices: string[];
}

/** Keys that apply only to replays. */
const OF_REPLAYS = ["outside", "device"];

/** Returns the replays of a trace along a curve (crates/web/src/replays.rs). */
export function replays(entry: Entry, { system, faults, load }: Asked, { file, text }: Trace, at: number[], requests: number): object {
  const options = Object.entries(entry.values).filter(([field]) => kindOf(field) === "option" && ![...OF_REPLAYS, "faults"].includes(field));
  return {
    trace: { file, text, device: entry.values.device ?? null },
    name: entry.system,
    blueprint: system.blueprint,
    values: changesOf(entry),
    options,
    faults,
    modes: at.map((depth) => (load === "asap" ? { asap: { depth } } : { timed: { time_scale: 1 } })),
    outside: entry.values.outside ?? "refuse",
    requests,
  };
}

const OF_DEMAND = ["size", "read", "random", "range", "warm_up", ...OF_REPLAYS];

/** Whether a key belongs to the workload. */
export function isOfDemand(field: string): boolean {
  return kindOf(field) === "demand" || OF_DEMAND.includes(field);
}

/** Returns the name of an entry: the system with its changes and, if pinned, its workload. */
export function nameOf({ system, demand, values, pinned }: Entry): string {
  const changed = Object.entries(values).filter(([field]) => !isOfDemand(field));
  const said = changed.map(([field, value]) => (field === "faults" ? value.replace(/\.toml$/, "") : `${field.split(".").at(-1)} ${value}`));
  const few = said.length > 2 ? [`${said.length} changes`] : said;
  return [system, ...few, ...(pinned ? [demand || "one size", "pinned"] : [])].join(", ");
}

/** Returns the cache key of a curve, which contains everything that the curve depends on. */
export function keyOf({ system, demand, values }: Entry, { load, most, requests }: State): string {
  return JSON.stringify([system, demand, values, load, load === "rate" ? most : 0, requests]);
}

/** File name of an entry's changed system. */
export const FILE = "system.toml";

/** Returns the command that computes the curve of an entry. */
export function command(entry: Entry, state: State, load: Load): string {
  const along = optionOf(load).map((option): [string, string] => [option, loadsOf(load, state).join(",")]);
  if (load === "asap" || load === "timed") {
    const isFile = changesOf(entry).some(([field]) => !CHANGES.includes(field));
    const options = Object.entries(entry.values).filter(([field]) => !isFile || kindOf(field) === "option");
    const given = [["mode", load], ...along, ["requests", String(state.requests)], ...options];
    const parts = ["headstack trace replay", quoted(entry.demand), quoted(isFile ? FILE : entry.system)];
    const told = (option: string, value: string) =>
      option === "device" ? `--step ${quoted(`device=${value}`)}` : `--${option.replaceAll("_", "-")} ${quoted(value)}`;
    return [parts.join(" "), ...given.map(([option = "", value = ""]) => told(option, value))].join(" \\\n  ");
  }
  const length = hasLength(entry) ? [] : [["requests", String(state.requests)]];
  const vary = [...Object.entries(entry.values), ...along, ...length];
  const parts = ["headstack sweep", quoted(entry.system), ...(entry.demand ? [`-w ${quoted(entry.demand)}`] : [])];
  return [parts.join(" "), ...vary.map(([field, value]) => `--vary ${quoted(`${field}=${value}`)}`)].join(" \\\n  ");
}

/** Quotes an argument for a shell. */
function quoted(text: string): string {
  return /^[\w.,=:/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const PIN = "pinned";

/** Encodes the state as an address fragment. */
export function toHash(state: State): string {
  const told = new URLSearchParams({ load: state.load, at: String(state.at), requests: String(state.requests), shows: state.shows });
  if (state.load === "rate") told.set("most", String(state.most));
  if (state.loads.length) told.set("loads", state.loads.join(","));
  told.set("selected", String(state.selected));
  if (state.inside !== null) told.set("inside", state.inside);
  for (const { system, demand, values, pinned } of state.entries) {
    const varied = Object.entries(values).map(([field, value]) => `${field}=${value}`);
    told.append("of", [system, demand, ...varied, ...(pinned ? [PIN] : [])].join("|"));
  }
  return `#${told}`;
}

/** Returns the current form of a key, which has another name in addresses of earlier versions. */
const currentKey = (key: string) => key.replace(/^(groups\[\d+\])\.stripe_unit$/, "$1.chunk_size");

/** Decodes the state of an address fragment; missing parts are taken from `other`. */
export function fromHash(hash: string, other: State): State {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string, usual: number) => {
    const value = Number(told.get(name));
    return Number.isFinite(value) && value > 0 ? value : usual;
  };
  const entries = told.getAll("of").map((text): Entry => {
    const [system = "", demand = "", ...rest] = text.split("|");
    const varied = rest.filter((part) => part && part !== PIN).map((part): [string, string] => {
      const at = part.indexOf("=");
      return [currentKey(part.slice(0, at)), part.slice(at + 1)];
    });
    return { system, demand, values: Object.fromEntries(varied), pinned: rest.includes(PIN) };
  });
  const known = entries.filter(({ system }) => system);
  const shows = SHOWN.find((one) => one === told.get("shows")) ?? other.shows;
  const all = known.length ? known : other.entries;
  const selected = Math.min(all.length - 1, Math.max(0, Number(told.get("selected")) || 0));
  const load = told.get("load") === "rate" ? "rate" : "depth";
  const [at, most, requests] = [number("at", other.at), number("most", other.most), number("requests", other.requests)];
  const some = (told.get("loads") ?? "").split(",").map(Number).filter((one) => one > 0);
  return { entries: all, selected, load, loads: some, at, most, requests, shows, inside: told.get("inside") };
}
