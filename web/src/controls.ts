/** Controls for stated fields of a system's file and for options of runs. */

import { html } from "./dom";
import { amountsOf, faultsOf, usually } from "./faults";
import type { Stated } from "./engine";
import type { Entry, Trace } from "./state";

/** A control: the fields that it sets, and their range. */
interface Control {
  label: string;
  /** Keys of the file or options, which are set together. */
  fields: string[];
  /** Values of the fields without a change. */
  usual: string[];
  /** Values to choose from; without choices, the control is a slider over factors of the usual value. */
  choices?: [value: string, label: string][];
  /** Maximum factor, up and down. */
  reach?: number;
  /** Whether steps of the slider are doublings. */
  doubles?: boolean;
  /** Whether the choices have no order. */
  isList?: boolean;
  /** Whether the choice determines the other controls. */
  decides?: boolean;
}

/** Controls, with notes on values that cannot be varied. */
export interface Controls {
  all: Control[];
  notes: string[];
}

export interface Words {
  [option: string]: string[];
}

/** Sets values; `decides` is true if the set of controls changes. */
export type Change = (values: Record<string, string | null>, decides: boolean) => void;

/** Returns the values of a file as text, by the path of their key. */
export function flattened(value: unknown, path = ""): Record<string, string> {
  if (Array.isArray(value)) return Object.assign({}, ...value.map((one, n) => flattened(one, `${path}[${n}]`)));
  if (value && typeof value === "object") {
    return Object.assign({}, ...Object.entries(value).map(([key, one]) => flattened(one, path ? `${path}.${key}` : key)));
  }
  return value === null || value === undefined ? {} : { [path]: String(value) };
}

const SIZES = ["512B", "1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB"];
const plain = (values: string[]): [string, string][] => values.map((value) => [value, value]);
const orUsual = (values: string[], usual = "as described"): [string, string][] => [["", usual], ...plain(values)];

/** Returns the controls of a system; `fault` is its current fault, and `dropped` are dropped fault schedules. */
export function ofSystem(system: Stated, words: Words, drives: string[], fault = "", dropped: string[] = []): Controls {
  const { blueprint, stated } = system;
  const keys = flattened(stated);
  const scaled = (label: string, pattern: RegExp, reach: number, doubles = false): Control[] => {
    const fields = Object.keys(keys).filter((key) => pattern.test(key) && quantity(keys[key] ?? "") !== null);
    return fields.length ? [{ label, fields, usual: fields.map((key) => keys[key] ?? ""), reach, doubles }] : [];
  };
  const chosen = (label: string, option: string, some: string[]): Control => ({ label, fields: [option], usual: [""], choices: orUsual(some) });
  const faults = faulty(system, fault, dropped);
  if (blueprint.kind === "array") {
    const count = keys["drives[0].count"];
    const all = [
      ...(count ? [{ label: "drives", fields: ["drives"], usual: [count], reach: 4 }] : []),
      chosen("drive", "drive", drives),
      chosen("level", "level", words.level ?? []),
      ...scaled("chunk size", /^groups\[\d+\]\.chunk_size$/, 16, true),
      ...scaled("cache", /^controller\.cache\.(data|memory)$/, 16, true),
      chosen("scheduling in the drives", "policy", words.policy ?? []),
      ...faults,
    ];
    return { all, notes: ["The drives have their own file; choose another drive, or drop the file of a drive on the page."] };
  }
  if (stated.volume !== undefined) {
    const all = [
      ...scaled("size", /^capacity\.size$/, 8, true),
      ...scaled("IOPS", /^volume\.iops$/, 4),
      ...scaled("throughput", /^volume\.throughput$/, 4),
      ...faults,
    ];
    const why = keys["volume.iops"] ? "" : " Its performance follows from its type and size, since its file states no IOPS.";
    return { all, notes: [`The cloud provider documents no spindle, RAID level or cache of its volumes.${why}`] };
  }
  if (stated.flash !== undefined) {
    const all = [
      chosen("state", "state", words.state ?? []),
      ...scaled("buffer", /^buffer\.size$/, 16, true),
      ...scaled("SLC cache", /^slc_cache\.\w+$/, 8, true),
      ...scaled("interface", /^interface\.rate$/, 8, true),
      ...scaled("interface lanes", /^interface\.lanes$/, 4, true),
      chosen("behind", "host", words.host ?? []),
      ...faults,
    ];
    return { all, notes: ["A solid-state drive has no spindle and no arm; its file describes its flash."] };
  }
  const all = [
    ...scaled("spindle speed", /^spindle\.speed$/, 3),
    ...scaled("seek times", /^seek\.\w+$/, 4),
    ...scaled("buffer", /^buffer\.size$/, 16, true),
    ...scaled("interface", /^interface\.rate$/, 8, true),
    chosen("order", "policy", words.policy ?? []),
    chosen("queue", "queue_depth", ["1", "2", "4", "8", "16", "32", "64", "128"]),
    chosen("write cache", "write_cache", words.write_cache ?? []),
    chosen("read-ahead", "read_ahead", words.read_ahead ?? []),
    chosen("behind", "host", words.host ?? []),
    ...faults,
  ];
  return { all, notes: stated.seek === undefined ? ["Its file states no seek times; they are derived from other values."] : [] };
}

/** Returns the controls for the fault and its amount. */
function faulty(system: Stated, now: string, dropped: string[]): Control[] {
  const known = faultsOf(system);
  const usual = usually(now);
  const others = [...new Set([...dropped, ...(now && !known.some(([file]) => file === usual) ? [now] : [])])];
  // The selected fault may have another amount than the usual one, so its entry gets the current file.
  const named = known.map(([file, label]): [string, string] => [file === usual ? now : file, label]);
  const choices: [string, string][] = [["", "healthy"], ...named, ...plain(others)];
  const amounts = amountsOf(now);
  return [
    { label: "faults", fields: ["faults"], usual: [""], choices, decides: true },
    ...(amounts.length ? [{ label: "amount", fields: ["faults"], usual: [""], choices: amounts }] : []),
  ];
}

const RANGE: Control = {
  label: "range of the system",
  fields: ["range"],
  usual: [""],
  choices: [["", "whole system"], ...[75, 50, 25, 10, 5, 1].map((share): [string, string] => [`0%..${share}%`, `first ${share} %`])],
};

/** Returns the controls for requests of one size. */
export function ofOneSize(): Controls {
  const size: Control = { label: "size", fields: ["size"], usual: ["4KiB"], choices: plain(SIZES) };
  return { all: [size, percent("reads", "read"), percent("random", "random"), RANGE], notes: [] };
}

/** Returns the controls of a workload; `fixed` is the reason for the fixed load of a scenario. */
export function ofDemand(demand: Stated, fixed: string | null): Controls {
  const { blueprint, stated } = demand;
  const keys = flattened(stated);
  const all = [...mixed(keys), ...sized(keys), RANGE];
  const sizes = Object.keys(keys).filter((key) => SIZE.test(key)).length;
  const several = sizes > 1 ? [`The workload has ${sizes} request sizes; choose requests of one size to change the size.`] : [];
  if (blueprint.kind !== "scenario") return { all, notes: several };
  const warm: Control = { label: "warm-up", fields: ["warm_up"], usual: [""], choices: orUsual(["0", "100", "1000", "10000"]) };
  const pace = fixed === null ? "The load is the number of clients." : `The load is fixed: ${fixed}.`;
  const why = sizes ? "" : " Request sizes and shares follow from the clients' tasks.";
  return { all: [...all, warm], notes: [`The clients of a scenario have their own pace, so no rate can be set. ${pace}${why}`, ...several] };
}

/**
 * Returns the devices of a trace that a command can name; names with commas are excluded, since a step separates names
 * by commas.
 */
export function sayable({ devices }: Trace): string[] {
  return devices.filter((device) => !device.includes(","));
}

/** Returns the controls of a trace. */
export function ofTrace(trace: Trace): Controls {
  const { format, requests, seconds, devices } = trace;
  const known = sayable(trace);
  const device: Control = { label: "device", fields: ["device"], usual: [""], choices: plain(known), isList: true };
  const outside: Control = {
    label: "requests past the end",
    fields: ["outside"],
    usual: [""],
    choices: [["", "refuse the trace"], ["fold", "fold into the system"], ["drop", "drop"]],
  };
  const is = `${requests.toLocaleString("en")} requests in ${Number(seconds.toPrecision(3))} s (${format}).`;
  const why = "Sizes, shares and offsets are as recorded; the rate axis scales the recorded arrivals.";
  return { all: [...(devices.length > 1 && known.length ? [device] : []), outside], notes: [`${is} ${why}`] };
}

const STEPS = Array.from({ length: 21 }, (_, n) => 5 * n);
const percent = (label: string, field: string): Control => ({ label, fields: [field], usual: ["100"], choices: STEPS.map((step) => [String(step), `${step} %`]) });

/** Keys of the sizes and shares in the lines of a workload or the streams of a scenario. */
const SIZE = /(^|\.)lines\[\d+\]\.size$/;
const SHARES = [
  ["reads", /(^|\.)lines\[\d+\]\.read_percent$/],
  ["random", /(^|\.)lines\[\d+\]\.random_percent$/],
] as const;

/** Returns the controls that set the shares of all lines together. */
function mixed(keys: Record<string, string>): Control[] {
  return SHARES.flatMap(([label, share]): Control[] => {
    const fields = Object.keys(keys).filter((key) => share.test(key));
    const choices: [string, string][] = [["", "as described"], ...STEPS.map((step): [string, string] => [String(step), `${step} %`])];
    return fields.length ? [{ label, fields, usual: fields.map((key) => keys[key] ?? ""), choices }] : [];
  });
}

/**
 * Returns the control of the request size if all requests have the same size; an alignment equal to the size changes
 * with it.
 */
function sized(keys: Record<string, string>): Control[] {
  const [size, ...others] = Object.keys(keys).filter((key) => SIZE.test(key));
  if (!size || others.length) return [];
  const align = size.replace(/size$/, "align");
  const fields = keys[align] === keys[size] ? [size, align] : [size];
  return [{ label: "size", fields, usual: fields.map((key) => keys[key] ?? ""), choices: plain(SIZES) }];
}

/** Parses a number with a unit. */
function quantity(text: string): { value: number; unit: string } | null {
  const found = /^([\d_.]+)\s*([A-Za-z/%]*)$/.exec(text);
  const value = Number(found?.[1]?.replaceAll("_", ""));
  return found && value > 0 ? { value, unit: found[2] ?? "" } : null;
}

/**
 * Returns a multiple of a quantity as text, with up to four significant digits, or as an integer if the quantity is an
 * integer without a unit.
 */
export function times(text: string, factor: number): string {
  const found = quantity(text);
  if (!found || factor === 1) return text;
  const { value, unit } = found;
  const product = value * factor;
  if (!unit) return String(Math.max(1, Math.round(product)));
  const bytes = /^([KMGT]?)iB$/.exec(unit);
  if (bytes && !Number.isInteger(product)) return times(`${value * 1024}${{ K: "B", M: "KiB", G: "MiB", T: "GiB" }[bytes[1] ?? ""] ?? "B"}`, factor);
  return `${unit === "rpm" ? 10 * Math.round(product / 10) : Number(product.toPrecision(4))}${unit}`;
}

/** Returns the factor by which a control's fields are currently changed. */
function factorOf({ fields, usual }: Control, values: Record<string, string>): number {
  const [now, was] = [quantity(values[fields[0] ?? ""] ?? usual[0] ?? ""), quantity(usual[0] ?? "")];
  return now && was ? (now.value * size(now.unit)) / (was.value * size(was.unit)) : 1;
}

const size = (unit: string) => ({ KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 })[unit] ?? 1;

let ids = 0;

/** Returns a control as a row of the page. */
export function shown(control: Control, entry: Entry, change: Change): HTMLElement {
  const id = `control-${ids++}`;
  const label = html("label", { for: id }, control.label);
  const { fields, usual } = control;
  const now = () => entry.values[fields[0] ?? ""] ?? usual[0] ?? "";
  const set = (texts: string[]) => {
    const values = fields.map((field, n): [string, string | null] => [field, texts[n] === usual[n] ? null : (texts[n] ?? null)]);
    change(Object.fromEntries(values), control.decides ?? false);
  };
  if (control.choices && !isScale(control)) {
    const isMixed = usual.some((text) => text !== "") && fields.length > 1;
    const value = isMixed ? (entry.values[fields[0] ?? ""] ?? "") : now();
    const options = control.choices.map(([choice, name]) => html("option", { value: choice, selected: choice === value }, name));
    const pick = html("select", { id }, ...options);
    pick.addEventListener("change", () => set(fields.map((_, n) => (pick.value === "" ? (usual[n] ?? "") : pick.value))));
    return html("div", { class: "control" }, label, pick);
  }
  const typed = { type: "text", size: 9, "aria-label": `${control.label}, as text`, spellcheck: "false", autocomplete: "off" };
  const said = control.choices ? html("output", { for: id }) : html("input", typed);
  const slider = html("input", { id, type: "range", ...scaleOf(control) });
  const texts = () => {
    const at = Number(slider.value);
    if (control.choices) return fields.map(() => control.choices?.[at]?.[0] ?? "");
    const factor = control.doubles ? 2 ** at : Number((10 ** (at / 100)).toPrecision(6));
    return usual.map((text) => times(text, factor));
  };
  const update = () => {
    const first = now();
    const text = control.choices?.find(([choice]) => choice === first)?.[1] ?? first;
    said.value = text;
    const factor = Number(factorOf(control, entry.values).toPrecision(2));
    slider.setAttribute("aria-valuetext", fields.length > 1 && factor !== 1 ? `${text}, ${factor} times` : text);
  };
  const place = () => (slider.value = String(placeOf(control, entry.values, now())));
  place();
  update();
  slider.addEventListener("input", () => {
    set(texts());
    update();
  });
  // The typed value is that of the first field; the other fields change by the same factor.
  said.addEventListener("change", () => {
    const [first = "", ...others] = usual;
    const [typed, was] = [quantity(said.value.trim()), quantity(first)];
    const unit = typed?.unit || was?.unit || "";
    const factor = typed && was ? (typed.value * size(unit)) / (was.value * size(was.unit)) : 1;
    set([typed ? `${typed.value}${unit}` : said.value.trim() || first, ...others.map((text) => times(text, factor))]);
    place();
    update();
  });
  return html("div", { class: "control" }, label, said, slider);
}

/** Whether the choices have an order. */
function isScale({ choices, isList }: Control): boolean {
  return !isList && choices !== undefined && choices.length > 8 && choices[0]?.[0] !== "";
}

function scaleOf({ choices, reach = 4, doubles }: Control): { min: number; max: number; step: number } {
  if (choices) return { min: 0, max: choices.length - 1, step: 1 };
  const end = Math.round((doubles ? Math.log2(reach) : 100 * Math.log10(reach)));
  return { min: -end, max: end, step: 1 };
}

function placeOf(control: Control, values: Record<string, string>, now: string): number {
  if (control.choices) return Math.max(0, control.choices.findIndex(([choice]) => choice === now));
  const factor = factorOf(control, values);
  return Math.round(control.doubles ? Math.log2(factor) : 100 * Math.log10(factor));
}
