/** Arithmetic of axes: conversion between values and shares of the axis, and the round values labelled on it. */

export interface Scale {
  readonly low: number;
  readonly high: number;
  /** The share of the axis, 0 at its low end; outside of 0 to 1 beyond its ends. */
  at(value: number): number;
  /** The value at a share of the axis. */
  value(share: number): number;
  /** Round values within the axis, at most about this many. */
  ticks(most: number): number[];
  text(tick: number): string;
}

export type Kind = "linear" | "log" | "nines";

/**
 * A scale of a kind from low to high; on a logarithmic one both must be above 0. Percentiles are placed by their number
 * of nines: 0 at 0, 90 at 1, 99 at 2; 100, which has infinitely many, at `most`.
 */
export function scale(kind: Kind, low: number, high: number, most = MOST_NINES): Scale {
  const { forth, back } = kind === "nines" ? nines(most) : KINDS[kind];
  const [from, to] = [forth(low), forth(high)];
  const span = to - from || 1;
  return {
    low,
    high,
    at: (value) => (forth(value) - from) / span,
    value: (share) => back(from + share * span),
    ticks: (count) => TICKS[kind](low, high, Math.max(2, count), most),
    text: kind === "nines" ? (tick) => figure(tick, 12) : tickText(low, high),
  };
}

/** Round values whose labels do not overlap, by the width of a character and the length of the axis in pixels. */
export function ticksApart(x: Scale, pixels: number, character: number): number[] {
  const room = x.ticks(Math.floor(pixels / 62));
  const widest = Math.max(...room.map((tick) => x.text(tick).length));
  let most = Math.floor(pixels / Math.max(48, character * widest + 16));
  // On a logarithmic axis 8 and 9 are nearer to each other than 1 and 2.
  const touches = (ticks: number[]) => ticks.some((tick, n) => n > 0 && gap(ticks[n - 1] ?? tick, tick) < 4);
  const gap = (one: number, next: number) =>
    (x.at(next) - x.at(one)) * pixels - (character * (x.text(one).length + x.text(next).length)) / 2;
  let ticks = x.ticks(most);
  while (most > 2 && touches(ticks)) ticks = x.ticks(--most);
  return ticks;
}

const MOST_NINES = 6;

function nines(most: number) {
  return {
    forth: (percent: number) => (percent >= 100 ? most : Math.min(most, -Math.log10(1 - percent / 100))),
    back: (place: number) => (place >= most ? 100 : 100 * (1 - 10 ** -place)),
  };
}

/** The position of 100 among these percentiles: one nine above the others. */
export function ninesEnd(percents: number[]): number {
  const most = extent(percents.filter((percent) => percent < 100))[1];
  return Math.min(MOST_NINES, Number.isFinite(most) ? 1 + Math.ceil(-Math.log10(1 - most / 100) - 1e-9) : 2);
}

const KINDS = {
  linear: { forth: (value: number) => value, back: (place: number) => place },
  log: { forth: Math.log10, back: (place: number) => 10 ** place },
};

const TICKS = { linear: linearTicks, log: logTicks, nines: ninesTicks };

function linearTicks(low: number, high: number, most: number): number[] {
  const step = roundStep((high - low) / most);
  if (!(step > 0)) return [low];
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => clean((first + index) * step));
}

/** The smallest of 1, 2 and 5 times a power of ten that is not below the value. */
export function roundStep(least: number): number {
  if (!(least > 0) || !Number.isFinite(least)) return 0;
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5].find((f) => f * power >= least * (1 - 1e-9)) ?? 10;
  return clean(factor * power);
}

function logTicks(low: number, high: number, most: number): number[] {
  const powers = { first: Math.floor(Math.log10(low) + 1e-9), last: Math.ceil(Math.log10(high) - 1e-9) };
  for (const factors of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]]) {
    const found: number[] = [];
    for (let power = powers.first; power <= powers.last; power++) {
      for (const factor of factors) found.push(clean(factor * 10 ** power));
    }
    const within = found.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
    if (within.length <= most && within.length >= 2) return within;
    if (factors.length === 1 && within.length > most) {
      const step = Math.ceil(within.length / most);
      return within.filter((_, index) => index % step === 0);
    }
  }
  // Less than a step of any of these: the axis is practically linear there.
  return linearTicks(low, high, most);
}

const NINES = [
  [0, 50, 90, 99, 99.9, 99.99, 99.999, 100],
  [0, 90, 99, 99.9, 99.99, 99.999, 100],
  [0, 90, 99.9, 99.999],
  [0, 99.9],
];

function ninesTicks(low: number, high: number, most: number, end: number): number[] {
  const { forth } = nines(end);
  const isShown = (tick: number) => tick >= low - 1e-9 && tick <= high + 1e-9 && (tick === 100 || forth(tick) < end - 0.5);
  const within = NINES.map((ticks) => ticks.filter(isShown));
  return within.find((ticks) => ticks.length >= 2 && ticks.length <= most) ?? linearTicks(low, high, most);
}

/** Removes the rounding errors of binary fractions: 0.30000000000000004 is 0.3. */
function clean(value: number): number {
  return Number(value.toPrecision(12));
}

/** Powers of a thousand that stand for long numbers where all ticks are large. */
function tickText(low: number, high: number): (tick: number) => string {
  const most = Math.max(Math.abs(low), Math.abs(high));
  const [unit, sign] = most >= 2e9 ? [1e9, " G"] : most >= 2e6 ? [1e6, " M"] : [1, ""];
  return (tick) => figure(tick / unit, 6) + (tick === 0 ? "" : sign);
}

/** A number for display: rounded to significant digits, with thousands separated. */
export function figure(value: number, digits = 5): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e15) return sign(String(Number(value.toPrecision(digits))));
  const rounded = Number(value.toPrecision(Math.max(digits, Math.floor(Math.log10(size)) + 1)));
  const decimals = Math.max(0, Math.min(12, digits - 1 - Math.floor(Math.log10(size))));
  const [whole, part] = String(Number(rounded.toFixed(decimals))).split(".");
  return sign(setApart(whole ?? "") + (part ? `.${part}` : ""));
}

/** A value with its known digits, and half its interval: "58.4 ± 0.6", as in words.py. */
export function withError(value: number, half: number): string {
  const place = Math.floor(Math.log10(half));
  const decimals = half > 0 ? Math.max(0, Math.min(12, -place + (half / 10 ** place < 2 ? 1 : 0))) : 2;
  const fixed = (number: number) => {
    const [whole, part] = number.toFixed(decimals).split(".");
    return setApart(whole ?? "") + (part ? `.${part}` : "");
  };
  return `${fixed(value)} ± ${fixed(half)}`;
}

/** The unit in which a time in ms is shown, and how many of it a ms has: as in words.py. */
export function timeUnit(ms: number): { unit: string; times: number } {
  return ms < 1 ? { unit: "µs", times: 1000 } : ms < 10_000 ? { unit: "ms", times: 1 } : { unit: "s", times: 0.001 };
}

/**
 * Numbers of a column or a grid with equally many decimals: so that the largest has the given number of digits, or
 * fewer if no number has more. If that would change a number by more than a share of it, each has its own number of
 * digits.
 */
export function alike(values: readonly number[], digits: number, share: number): (value: number) => string {
  const [, most] = extent(values.map(Math.abs));
  if (!(most > 0)) return (value) => figure(value, digits);
  const room = Math.max(0, Math.min(9, digits - 1 - Math.floor(Math.log10(most))));
  const needed = (value: number) => (String(Number(value.toFixed(room))).split(".")[1] ?? "").length;
  const decimals = Math.max(...values.map(needed));
  const isChanged = (value: number) => Math.abs(Number(value.toFixed(room)) - value) > share * Math.abs(value);
  if (most >= 1e15 || values.some(isChanged)) return (value) => figure(value, digits);
  return (value) => {
    const [whole, part] = Math.abs(value).toFixed(decimals).split(".");
    const text = setApart(whole ?? "") + (part ? `.${part}` : "");
    return Number(value.toFixed(decimals)) < 0 ? `\u2212${text}` : text;
  };
}

/** Separates thousands. */
function setApart(whole: string): string {
  return whole.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A minus sign is as wide as a plus. */
function sign(text: string): string {
  return text.replace("-", "\u2212");
}

const LEAST_SPAN = 0.04;

/** Low and high with a margin; a linear axis starts at 0 if that is near enough, so that lengths can be compared. */
export function padded(kind: Kind, values: number[], share = 0.06): [number, number] {
  const known = values.filter((value) => Number.isFinite(value) && (kind !== "log" || value > 0));
  if (!known.length) return kind === "log" ? [1, 10] : [0, 1];
  let [low, high] = extent(known);
  if (kind === "nines") return [low, high > low ? high : low + (100 - low) / 2];
  if (kind === "log") {
    const room = Math.max((high / low) ** share, 1.08);
    return [low / room, high * room];
  }
  if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(0, 2 * low), Math.max(0, 2 * high)];
  // A line that hardly rises must not look steep.
  const least = LEAST_SPAN * Math.max(Math.abs(low), Math.abs(high));
  if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
  const room = share * (high - low);
  const nearZero = (end: number, other: number) => Math.abs(end) < 0.4 * Math.abs(other) && end * other >= 0;
  return [nearZero(low, high) ? 0 : low - room, nearZero(high, low) ? 0 : high + room];
}

/** The minimum and the maximum of any number of values. */
export function extent(values: number[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
