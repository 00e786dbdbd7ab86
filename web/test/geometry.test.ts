import assert from "node:assert/strict";
import { test } from "node:test";
import { stepped, type Spot } from "../src/chart";
import { along, labelled, nearest, overlap, path } from "../src/geometry";

test("the nearest point, within reach", () => {
  const points = [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 10, y: 10 }];
  assert.equal(nearest(points, { x: 8, y: 1 }), 1);
  assert.equal(nearest(points, { x: 8, y: 30 }, 10), -1);
  assert.equal(nearest([], { x: 0, y: 0 }), -1);
});

test("a path keeps the order of its points, and breaks where one is missing", () => {
  const bending = [{ x: 0, y: 9 }, { x: 20, y: 5 }, { x: 12.34, y: 1 }];
  assert.equal(path(bending), "M0 9L20 5L12.3 1");
  assert.equal(path([{ x: 1, y: 1 }, null, { x: 2, y: 2 }, { x: 3, y: 3 }]), "M1 1M2 2L3 3");
});

test("labels lie over no other label, and not beyond the frame", () => {
  const frame = { left: 0, top: 0, right: 300, bottom: 200 };
  const crowd = Array.from({ length: 12 }, (_, n) => ({ at: { x: 150 + n, y: 100 + n }, text: `${2 ** n}` }));
  const placed = labelled(crowd, [], frame).filter((label) => label !== null);
  assert.ok(placed.length >= 4 && placed.length < crowd.length);
  const boxes = placed.map(({ at, end, text }) => {
    const left = end === "start" ? at.x : at.x - 6.2 * text.length;
    return { left, right: left + 6.2 * text.length, top: at.y - 9, bottom: at.y + 1 };
  });
  boxes.forEach((box, n) => boxes.slice(n + 1).forEach((other) => assert.ok(!overlap(box, other))));
  assert.ok(boxes.every((box) => box.left >= 0 && box.right <= 300 && box.top >= 0 && box.bottom <= 200));
});

test("labels keep off lines where they can", () => {
  const ink = along([{ x: 100, y: 100 }, { x: 160, y: 130 }]);
  const [label] = labelled([{ at: { x: 100, y: 100 }, text: "16" }], ink, { left: 0, top: 0, right: 300, bottom: 200 });
  assert.equal(label?.end, "end");
});

test("arrow keys go along a series past what is missing, and to the nearest of the next one", () => {
  const spot = (x: number, y: number): Spot => ({ at: { x, y }, text: () => [] });
  const spots = [[spot(0, 0), null, spot(20, 0)], [], [spot(100, 5), spot(19, 5)]];
  assert.deepEqual(stepped(spots, [0, 0], [0, 1]), [0, 2]);
  assert.equal(stepped(spots, [0, 2], [0, 1]), null);
  assert.deepEqual(stepped(spots, [0, 2], [1, 0]), [2, 1]);
  assert.equal(stepped(spots, [2, 1], [1, 0]), null);
});
