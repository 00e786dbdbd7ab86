import assert from "node:assert/strict";
import { test } from "node:test";
import { alike, figure, ninesEnd, padded, roundStep, scale, ticksApart } from "../src/scale";

const near = (found: number, expected: number) => assert.ok(Math.abs(found - expected) < 1e-9 * Math.max(1, Math.abs(expected)), `${found} is not ${expected}`);

test("a linear axis is proportional, and goes both ways", () => {
  const axis = scale("linear", 100, 500);
  assert.deepEqual([axis.at(100), axis.at(300), axis.at(500), axis.at(0)], [0, 0.5, 1, -0.25]);
  assert.equal(axis.value(axis.at(123)), 123);
  assert.deepEqual(axis.ticks(5), [100, 200, 300, 400, 500]);
  assert.deepEqual(scale("linear", -0.2, 0.4).ticks(4), [-0.2, 0, 0.2, 0.4]);
});

test("a logarithmic axis gives equal room to equal factors", () => {
  const axis = scale("log", 1, 10_000);
  near(axis.at(100), 0.5);
  near(axis.value(0.25), 10);
  assert.deepEqual(axis.ticks(8), [1, 10, 100, 1000, 10_000]);
  assert.deepEqual(scale("log", 4, 60).ticks(8), [5, 10, 20, 50]);
  // Nineteen decades do not fit: every so many of them.
  assert.deepEqual(scale("log", 1, 1e19).ticks(5), [1, 1e4, 1e8, 1e12, 1e16]);
});

test("percentiles lie by their nines, and 100 one nine beyond the others", () => {
  const end = ninesEnd([50, 90, 99, 99.9, 100]);
  assert.equal(end, 4);
  const axis = scale("nines", 0, 100, end);
  for (const [percent, share] of [[0, 0], [90, 0.25], [99, 0.5], [99.9, 0.75], [100, 1]] as const) near(axis.at(percent), share);
  near(axis.value(0.5), 99);
  assert.equal(axis.value(1), 100);
  assert.deepEqual(axis.ticks(9), [0, 50, 90, 99, 99.9, 100]);
  assert.deepEqual(axis.ticks(4), [0, 90, 99.9]);
});

test("ticks are as many as fit at most, and round", () => {
  for (const kind of ["linear", "log"] as const) {
    for (const [low, high] of [[1, 3], [0.001, 7], [350, 4321], [1e-6, 1e6], [5, 5.2]] as const) {
      for (const most of [2, 3, 5, 9]) {
        const ticks = scale(kind, low, high).ticks(most);
        assert.ok(ticks.length <= most + 1, `${kind} ${low} to ${high}: ${ticks.join()} are more than ${most}`);
        assert.ok(ticks.every((tick) => tick >= low - 1e-6 * high && tick <= high * 1.000001), `${kind} ${low} to ${high} at most ${most}: ${ticks.join()}`);
      }
    }
  }
  assert.deepEqual([0.3, 2, 2.1, 70, 0].map(roundStep), [0.5, 2, 5, 100, 0]);
});

test("axes have room, and begin at 0 where that is near", () => {
  assert.deepEqual(padded("linear", [10, 100])[0], 0);
  assert.ok(padded("linear", [80, 100])[0] > 70);
  assert.deepEqual(padded("linear", [-100, -10])[1], 0);
  assert.deepEqual(padded("linear", []), [0, 1]);
  const [low, high] = padded("log", [0, 5, 500]);
  assert.ok(low > 0 && low < 5 && high > 500);
  // 0.05 of 100 is no steep fall.
  const [bottom, top] = padded("linear", [99.95, 100]);
  assert.ok(top - bottom > 3.9);
});

test("figures have the digits that count", () => {
  const texts = [0, 1234.5678, 12_345_678, 0.000123456, -3.5, 0.1 + 0.2, 1e-9].map((value) => figure(value));
  assert.deepEqual(texts, ["0", "1,234.6", "12,345,678", "0.00012346", "\u22123.5", "0.3", "1e\u22129"]);
  assert.equal(scale("linear", 0, 4e9).text(2e9), "2 G");
});

test("numbers of a column have as many decimals each", () => {
  const texts = (values: number[], digits: number, share = 0.003) => values.map(alike(values, digits, share));
  assert.deepEqual(texts([49.092, 31.02, 5, 0], 5), ["49.092", "31.020", "5.000", "0.000"]);
  assert.deepEqual(texts([14.5212, -0.0254, 3], 4, Infinity), ["14.52", "\u22120.03", "3.00"]);
  assert.deepEqual(texts([12_345.678, 99.5], 5), ["12,346", "99.5"]);
  assert.deepEqual(texts([71_682_019, 36.701], 5), ["71,682,019", "36.701"]);
  assert.deepEqual(texts([1200, 0.0003], 4), ["1,200", "0.0003"]);
  assert.deepEqual(texts([0, 0], 4), ["0", "0"]);
});

test("texts at a logarithmic axis do not touch", () => {
  for (const pixels of [320, 700, 1040]) {
    const x = scale("log", 700, 30000);
    const ticks = ticksApart(x, pixels, 6.6);
    const ends = ticks.map((tick) => [-1, 1].map((side) => x.at(tick) * pixels + (side * 6.6 * x.text(tick).length) / 2));
    ends.slice(1).forEach(([left], n) => assert.ok((left ?? 0) > (ends[n]?.[1] ?? 0), `${pixels}: ${ticks}`));
    assert.ok(ticks.length >= 3, `${pixels}: ${ticks}`);
  }
});
