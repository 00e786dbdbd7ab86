import assert from "node:assert/strict";
import { test } from "node:test";
import { dataOf } from "../src/data";
import type { Heat, Lines, Series } from "../src/report";
import { shade, sorted } from "../src/table";

const series = (of: Partial<Series>): Series =>
  ({
    name: "a", x: [], y: [], labels: [], low: [], high: [], p99: [], low_x: [], high_x: [], mark: null,
    mark_at_most: false, published: false, marks: [], names: [], colour: "blue", dash: 0, shape: "circle", ...of,
  });

test("rows sort by size or alphabet, what is missing last", () => {
  const rows = [["d10", 5], ["d9", null], ["d1", -2]];
  assert.deepEqual(sorted(rows, 0, 1).map(([name]) => name), ["d1", "d9", "d10"]);
  assert.deepEqual(sorted(rows, 1, 1).map(([, value]) => value), [-2, 5, null]);
  assert.deepEqual(sorted(rows, 1, -1).map(([, value]) => value), [5, -2, null]);
});

test("of points it is told what they are, and what their marks say", () => {
  const figure: Lines = {
    kind: "lines", name: "n", title: "t", note: "", says: "", x_is_percentile: false, limits: [{ value: 2, label: "l" }],
    x: { label: "x", log: false, switch: false }, y: { label: "y", log: false, switch: false }, key: [["full", "meets"], ["cross", "fails"]],
    series: [series({ x: [3, 2], y: [1, 4], marks: ["cross", "full"], names: ["p", "q"] })],
  };
  const { columns, rows } = dataOf(figure);
  assert.deepEqual(columns, ["series", "x", "y", "of", "known"]);
  assert.deepEqual(rows, [["a", 3, 1, "p", "fails"], ["a", 2, 4, "q", "meets"]]);
});

test("the values behind lines are all there, those that were published by that name", () => {
  const figure: Lines = {
    kind: "lines", name: "n", title: "t", note: "", says: "", x_is_percentile: false, limits: [], key: [],
    x: { label: "x", log: false, switch: false }, y: { label: "y", log: true, switch: false },
    series: [series({ x: [3, 2], y: [1, null], labels: ["p", "q"] }), series({ x: [4], y: [5], low: [4.5], high: [6], published: true })],
  };
  const { columns, rows } = dataOf(figure);
  assert.deepEqual(columns, ["series", "x", "y", "at", "low", "high"]);
  assert.deepEqual(rows, [["a", 3, 1, "p", null, null], ["a", 2, null, "q", null, null], ["a (published)", 4, 5, null, 4.5, 6]]);
});

test("of a map the cells in which something happened, the greatest first", () => {
  const figure: Heat = {
    kind: "heat", name: "h", title: "t", note: "", says: "", unit: "requests", values: [[0, 2], [7, 0]],
    x: { label: "s", log: false, switch: false }, x_range: [0, 10], y: { label: "GB", log: false, switch: false }, y_range: [0, 4],
  };
  assert.deepEqual(dataOf(figure).rows, [[0, 5, 2, 4, 7], [5, 10, 0, 2, 2]]);
});

test("signed figures are coloured from a middle at 0", () => {
  assert.deepEqual(shade(-5, -5, 20, true), { share: 0.25, side: "below" });
  assert.deepEqual(shade(20, -5, 20, true), { share: 1, side: "above" });
  assert.deepEqual(shade(10, 10, 20, false), { share: 0, side: "above" });
});
