import assert from "node:assert/strict";
import { test } from "node:test";
import { looks } from "../src/looks";
import type { Series } from "../src/report";

const named = (name: string, published = false): Series =>
  ({ name, x: [], y: [], labels: [], low: [], high: [], mark: null, mark_at_most: false, published });

test("published series have the colour of ours that they name", () => {
  const series = [named("reads"), named("reads and writes"), named("disk"), named("Table 1, reads", true), named("HP's reads and writes", true), named("disks", true), named("disk", true)];
  assert.deepEqual(looks(series).map((look) => look.colour), ["c0", "c1", "c2", "c0", "c1", "c3", "c2"]);
});

test("more series than colours differ in their dashes", () => {
  const all = looks(Array.from({ length: 14 }, (_, n) => named(`s${n}`)));
  assert.equal(new Set(all.map((look) => look.colour + look.dash)).size, 14);
});
