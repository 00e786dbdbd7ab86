/** Curves of the state: what is known of them at once, what is missing coarse first and then fine. */

import type { Engine, Stated, Told } from "./engine";
import { coarse, keyOf, loads, points, type Entry, type State } from "./state";

/** Of each load what came of it; whether by fewer requests than were asked for. */
export interface Curve {
  told: Map<number, { is: Told; isCoarse: boolean }>;
  /** Why there is none. */
  refused: string | null;
}

const COARSE_REQUESTS = 400;
const REMEMBERED = 60;
/** Points of a curve that are asked for at a time: the deepest take longest. */
const PORTION = 3;

export class Answers {
  private readonly curves = new Map<string, Curve>();
  private readonly known = new Map<string, Promise<Stated>>();
  private generation = 0;

  constructor(
    readonly engine: Engine,
    /** What the catalogue does not have, by name. */
    readonly files: Map<string, Stated>,
  ) {}

  /** The blueprint of a name, and what it states. */
  stated(name: string): Promise<Stated> {
    const file = this.files.get(name);
    if (file) return Promise.resolve(file);
    const known = this.known.get(name) ?? this.engine.ask<Stated>({ ask: "blueprint", name }).then((found) => found as Stated);
    this.known.set(name, known);
    return known;
  }

  /** The file of an entry's system, with what was changed in it. */
  async toml(entry: Entry): Promise<string | null> {
    const { blueprint } = await this.stated(entry.system);
    const values = Object.entries(entry.values).filter(([field]) => /[.[]/.test(field) ? !field.startsWith("lines[") : ["drives", "drive", "level"].includes(field));
    return this.engine.ask<string>({ ask: "toml", blueprint, values }, 1);
  }

  /** Computes the curves of a state; what was wanted before is given up. `tell` hears of every change until then. */
  want(state: State, tell: (curves: (Curve | null)[]) => void): void {
    const generation = ++this.generation;
    const frozen = structuredClone(state);
    const isWanted = () => generation === this.generation;
    const all = () => isWanted() && tell(frozen.entries.map((entry, n) => this.curves.get(keyOf(entry, frozen)) ?? before[n] ?? null));
    // Until the first points are there, the curve that was, which is drawn already.
    const before = this.last;
    this.last = frozen.entries.map((entry, n) => this.curves.get(keyOf(entry, frozen)) ?? before[n] ?? null);
    if (frozen.entries.some((entry) => this.curves.has(keyOf(entry, frozen)))) all();
    frozen.entries.forEach((entry, n) => void this.compute(entry, frozen, n === frozen.selected, isWanted, () => {
      if (isWanted()) this.last[n] = this.curves.get(keyOf(entry, frozen)) ?? null;
      all();
    }));
  }

  private last: (Curve | null)[] = [];

  private async compute(entry: Entry, state: State, isSelected: boolean, isWanted: () => boolean, tell: () => void): Promise<void> {
    const key = keyOf(entry, state);
    const curve = this.curves.get(key) ?? { told: new Map(), refused: null };
    const missing = loads(state).filter((load) => curve.told.get(load)?.isCoarse !== false);
    if (!missing.length || curve.refused) return;
    const part = async (at: number[], requests: number | null, urgency: 0 | 1 | 2) => {
      const [system, demand] = await Promise.all([this.stated(entry.system), entry.demand ? this.stated(entry.demand) : null]);
      const asked = points(entry, state, system, demand, at, requests);
      const told = await this.engine.ask<Told[]>({ ask: "run", points: asked }, urgency, isWanted);
      if (!told) return;
      const isCoarse = requests !== null;
      at.forEach((load, n) => told[n] && (!isCoarse || !curve.told.has(load)) && curve.told.set(load, { is: told[n], isCoarse }));
      this.remember(key, curve);
    };
    try {
      if (!curve.told.size) {
        const first = coarse(loads(state));
        // Who drags sees the selected curve before the others; of one alone, each core takes a half.
        const portions = state.entries.length === 1 ? halves(first) : [first];
        await Promise.all(portions.map((at) => part(at, COARSE_REQUESTS, isSelected ? 0 : 1)));
        // Drawn once: half of a curve tells nothing.
        tell();
      }
      const portions = Array.from({ length: Math.ceil(missing.length / PORTION) }, (_, n) => missing.slice(PORTION * n, PORTION * (n + 1)));
      await Promise.all(portions.reverse().map((at) => part(at, null, 2).then(tell)));
    } catch (error) {
      curve.refused = (error as Error).message;
      this.remember(key, curve);
      tell();
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
