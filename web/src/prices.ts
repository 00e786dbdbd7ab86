/** The price of a system: its items, and the number of each. */

import type { Stated } from "./engine";
import { changesOf, type Entry } from "./state";

/** Dollars for an item: a drive, or an array's host without its drives. */
export type Prices = Record<string, number>;

/** The name of a system in a price list: a file name without directory and extension. */
const itemOf = (name: string) => (name.endsWith(".toml") ? name.replace(/^.*\//, "").replace(/\.toml$/, "") : name);

/** Free to choose: how drives are used does not change what is bought. */
const FREE = /^(level$|groups\[)/;
const OF_DRIVES = /^drives\[(\d+)\]\.(drive|count)$/;

/** Dollars for an entry's system with its changes; the item without a price if there is one. */
export function priceOf(entry: Entry, { blueprint, stated }: Stated, prices: Prices): { usd: number | null; missing: string } {
  const none = (what: string) => ({ usd: null, missing: `no price for ${what}` });
  const item = itemOf(entry.system);
  const changes = changesOf(entry);
  const bought: [item: string, count: number][] = [[item, 1]];
  if (blueprint.kind === "array") {
    const tables = (stated.drives as { drive: string; count: number }[] | undefined ?? []).map(({ drive, count }) => ({ drive, count }));
    for (const [field, value] of changes) {
      const [, at, key] = OF_DRIVES.exec(field) ?? [];
      const table = tables[Number(at ?? 0)];
      if (field === "usable") return none(`${item} by its capacity: set the number of drives`);
      if (FREE.test(field)) continue;
      if (table && (field === "drives" || key === "count")) table.count = Number(value);
      else if (table && (field === "drive" || key === "drive")) table.drive = value;
      else return none(`${item} with another ${field}`);
    }
    bought.push(...tables.map(({ drive, count }): [string, number] => [itemOf(drive), count]));
  } else if (changes.length) return none(`${item} as it was changed`);
  const unknown = bought.filter(([one]) => prices[one] === undefined).map(([one]) => one);
  if (unknown.length) return none(unknown.join(" and "));
  return { usd: bought.reduce((sum, [one, count]) => sum + (prices[one] ?? 0) * count, 0), missing: "" };
}
