/** Curves of the state: cached points at once, missing points coarse first, then fine. */

import type { Engine, Stated, Told } from "./engine";
import { scheduleOf } from "./faults";
import { changesOf, coarse, keyOf, loadsOf, points, replays, type Asked, type Entry, type Load, type State, type Trace } from "./state";

/** The result at each load, and whether it is from fewer requests than requested. */
export interface Curve {
  load: Load;
  told: Map<number, { is: Told; isCoarse: boolean }>;
  /** Why there is none. */
  refused: string | null;
}

const COARSE_REQUESTS = 400;
const REMEMBERED = 60;
/** Points of a curve per engine request: deep queues take longest. */
const PORTION = 3;

export class Answers {
  private readonly curves = new Map<string, Curve>();
  private readonly known = new Map<string, Promise<Stated>>();
  /** The part already shown. */
  readonly seen = new Map<string, Stated>();
  /** The reason for the fixed load of a scenario, by name. */
  private readonly fixed = new Map<string, Promise<string | null>>();
  /** Schedules by their text. */
  private readonly read = new Map<string, Promise<unknown>>();
  /** Recordings that were dropped, and schedules of faults, by name. */
  readonly traces = new Map<string, Trace>();
  readonly schedules = new Map<string, string>();
  private generation = 0;

  constructor(
    readonly engine: Engine,
    /** Dropped files that the catalogue does not have, by name. */
    readonly files: Map<string, Stated>,
  ) {}

  /** The blueprint of a name, and its stated keys. */
  stated(name: string): Promise<Stated> {
    const file = this.files.get(name);
    if (file) {
      this.seen.set(name, file);
      return Promise.resolve(file);
    }
    const known = this.known.get(name) ?? this.engine.ask<Stated>({ ask: "blueprint", name }).then((found) => found as Stated);
    this.known.set(name, known);
    known.then((stated) => this.seen.set(name, stated), () => undefined);
    return known;
  }

  /** The load parameter along the curve of an entry. */
  async loadOf({ demand }: Entry, state: State): Promise<Load> {
    if (this.traces.has(demand)) return state.load === "depth" ? "asap" : "timed";
    if (!demand || (await this.stated(demand)).blueprint.kind !== "scenario") return state.load;
    return (await this.whyFixed(demand)) === null ? "clients" : "fixed";
  }

  /** The reason for the fixed load of a scenario or workload; `null` if it can be chosen. */
  whyFixed(demand: string): Promise<string | null> {
    const ask = async () => {
      const { blueprint } = await this.stated(demand);
      return (await this.engine.ask<{ fixed: string | null }>({ ask: "describe", blueprint, values: [] }))?.fixed ?? null;
    };
    const known = this.fixed.get(demand) ?? ask();
    this.fixed.set(demand, known);
    return known;
  }

  /** The fault schedule of an entry's system, if any. */
  async faults({ system, values }: Entry): Promise<string | null> {
    const file = values.faults;
    if (!file) return null;
    const text = this.schedules.get(file) ?? scheduleOf(file, await this.stated(system));
    if (text === null) throw new Error(`${file}: file not loaded; drop it on the page`);
    return text;
  }

  /** The engine's question for an entry. */
  async asked(entry: Entry, state: State): Promise<Asked> {
    const known = entry.demand && !this.traces.has(entry.demand) ? this.stated(entry.demand) : null;
    const [system, demand, text, load] = await Promise.all([this.stated(entry.system), known, this.faults(entry), this.loadOf(entry, state)]);
    return { system, demand, faults: text === null ? null : await this.schedule(entry.values.faults ?? "", text), load };
  }

  private schedule(file: string, text: string): Promise<unknown> {
    const known = this.read.get(text) ?? this.engine.ask({ ask: "faults", file, text });
    this.read.set(text, known);
    return known;
  }

  /** Adds a dropped file, replacing one of the same name. */
  take<T>(of: Map<string, T>, name: string, value: T): void {
    of.set(name, value);
    this.curves.clear();
    this.fixed.delete(name);
  }

  /** The file of an entry's system, with its changes. */
  async toml(entry: Entry): Promise<string | null> {
    const { blueprint } = await this.stated(entry.system);
    const values = changesOf(entry);
    return this.engine.ask<string>({ ask: "toml", blueprint, values }, 1);
  }

  /** A sentence on the stated figures that an entry's changes drop; `null` for none. */
  async droppedFigures(entry: Entry): Promise<string | null> {
    const { blueprint } = await this.stated(entry.system);
    const values = changesOf(entry);
    return values.length ? this.engine.ask<string | null>({ ask: "dropped", name: entry.system, blueprint, values }, 1) : null;
  }

  /**
   * Computes the curves of a state and abandons the previous request. `show` receives every intermediate result. Returns
   * whether all was computed, with no newer request meanwhile.
   */
  async want(state: State, show: (curves: (Curve | null)[]) => void): Promise<boolean> {
    const generation = ++this.generation;
    const frozen = structuredClone(state);
    const isWanted = () => generation === this.generation;
    const all = () => isWanted() && show(frozen.entries.map((entry, n) => this.curves.get(keyOf(entry, frozen)) ?? before[n] ?? null));
    // Until the first points arrive, the previous curve, which is already drawn.
    const before = this.last;
    this.last = frozen.entries.map((entry, n) => this.curves.get(keyOf(entry, frozen)) ?? before[n] ?? null);
    if (frozen.entries.some((entry) => this.curves.has(keyOf(entry, frozen)))) all();
    const computed = frozen.entries.map((entry, n) => this.compute(entry, frozen, n === frozen.selected, isWanted, () => {
      if (isWanted()) this.last[n] = this.curves.get(keyOf(entry, frozen)) ?? null;
      all();
    }));
    await Promise.all(computed);
    return isWanted();
  }

  private last: (Curve | null)[] = [];

  private async compute(entry: Entry, state: State, isSelected: boolean, isWanted: () => boolean, show: () => void): Promise<void> {
    const key = keyOf(entry, state);
    const curve = this.curves.get(key) ?? { load: state.load, told: new Map(), refused: null };
    if (curve.refused) return;
    let asked: Asked;
    const part = async (at: number[], requests: number | null, urgency: 0 | 1 | 2) => {
      const trace = this.traces.get(entry.demand);
      const question = trace
        ? { ask: "replay", ...replays(entry, asked, trace, at, requests ?? state.requests) }
        : { ask: "run", points: points(entry, state, asked, at, requests) };
      const told = await this.engine.ask<Told[]>(question, urgency, isWanted);
      if (!told) return;
      const isCoarse = requests !== null;
      at.forEach((load, n) => told[n] && (!isCoarse || !curve.told.has(load)) && curve.told.set(load, { is: told[n], isCoarse }));
      this.remember(key, curve);
    };
    try {
      asked = await this.asked(entry, state);
      curve.load = asked.load;
      const all = loadsOf(curve.load, state);
      const missing = all.filter((load) => curve.told.get(load)?.isCoarse !== false);
      if (!missing.length) return;
      if (!curve.told.size) {
        const first = all.length > 1 ? coarse(all) : all;
        // The selected curve is computed before the others; a single curve is divided between two cores.
        const portions = state.entries.length === 1 ? halves(first) : [first];
        await Promise.all(portions.map((at) => part(at, COARSE_REQUESTS, isSelected ? 0 : 1)));
        // Drawn once: half of a curve is no use.
        show();
      }
      const portions = Array.from({ length: Math.ceil(missing.length / PORTION) }, (_, n) => missing.slice(PORTION * n, PORTION * (n + 1)));
      await Promise.all(portions.reverse().map((at) => part(at, null, 2).then(show)));
    } catch (error) {
      curve.refused = (error as Error).message;
      this.remember(key, curve);
      show();
    }
  }

  private remember(key: string, curve: Curve): void {
    this.curves.delete(key);
    this.curves.set(key, curve);
    for (const oldest of this.curves.keys()) {
      if (this.curves.size <= REMEMBERED) break;
      this.curves.delete(oldest);
    }
  }
}

function halves<T>(all: T[]): T[][] {
  return [all.filter((_, n) => n % 2 === 0), all.filter((_, n) => n % 2 === 1)].filter((half) => half.length);
}
