/** What can be dragged: fields of a system's file where it states them, and options of runs. */

import { html } from "./dom";
import type { Stated } from "./engine";
import type { Entry } from "./state";

/** A control: which fields it sets, and from what to what. */
interface Control {
  label: string;
  /** The keys that the file states, or options, which are set together. */
  fields: string[];
  /** What they are without a change. */
  usual: string[];
  /** What may be chosen; else it is a slider over factors of what is usual. */
  choices?: [value: string, label: string][];
  /** By so many times less and more. */
  reach?: number;
  /** Steps are doublings. */
  doubles?: boolean;
}

export interface Words {
  [option: string]: string[];
}

export type Change = (values: Record<string, string | null>) => void;

/** Keys of files by their paths, with their values as text. */
export function flattened(value: unknown, path = ""): Record<string, string> {
  if (Array.isArray(value)) return Object.assign({}, ...value.map((one, n) => flattened(one, `${path}[${n}]`)));
  if (value && typeof value === "object") {
    return Object.assign({}, ...Object.entries(value).map(([key, one]) => flattened(one, path ? `${path}.${key}` : key)));
  }
  return value === null || value === undefined ? {} : { [path]: String(value) };
}

const SIZES = ["512B", "1KiB", "2KiB", "4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB"];
const plain = (values: string[]): [string, string][] => values.map((value) => [value, value]);
const usually = (values: string[], usual = "as described"): [string, string][] => [["", usual], ...plain(values)];

/** What a system has that can be varied. */
export function ofSystem({ blueprint, stated }: Stated, words: Words, drives: string[]): Control[] {
  const keys = flattened(stated);
  const has = (pattern: RegExp) => Object.keys(keys).filter((key) => pattern.test(key));
  const scaled = (label: string, pattern: RegExp, reach: number, doubles = false): Control[] => {
    const fields = has(pattern).filter((key) => quantity(keys[key] ?? "") !== null);
    return fields.length ? [{ label, fields, usual: fields.map((key) => keys[key] ?? ""), reach, doubles }] : [];
  };
  const chosen = (label: string, option: string, some: string[]): Control => ({ label, fields: [option], usual: [""], choices: usually(some) });
  if (blueprint.kind === "array") {
    const count = keys["drives[0].count"];
    return [
      ...(count ? [{ label: "drives", fields: ["drives"], usual: [count], reach: 4 }] : []),
      chosen("drive", "drive", drives),
      chosen("level", "level", words.level ?? []),
      ...scaled("stripe unit", /^groups\[\d+\]\.stripe_unit$/, 16, true),
      ...scaled("cache", /^controller\.cache\.(data|memory)$/, 16, true),
      ...(keys["groups[0].level"] && keys["groups[0].level"] !== "raid0"
        ? [{ label: "a drive fails at once", fields: ["fail"], usual: [""], choices: [["", "no"], ["d0@0s", "the first"]] as [string, string][] }]
        : []),
      chosen("order in the drives", "policy", words.policy ?? []),
    ];
  }
  if (stated.flash !== undefined) return [chosen("filled before", "preconditioned", words.preconditioned ?? [])];
  if (stated.volume !== undefined) return [];
  return [
    ...scaled("spindle speed", /^spindle\.speed$/, 3),
    ...scaled("seek times", /^seek\.\w+$/, 4),
    ...scaled("buffer", /^buffer\.size$/, 16, true),
    ...scaled("interface", /^interface\.rate$/, 8, true),
    chosen("order", "policy", words.policy ?? []),
    chosen("write cache", "write_cache", words.write_cache ?? []),
    chosen("read ahead", "read_ahead", words.read_ahead ?? []),
  ];
}

/** What a workload has that can be varied; requests of one size have all of it. */
export function ofDemand(demand: Stated | null): Control[] {
  const range: Control = {
    label: "range of the system",
    fields: ["range"],
    usual: [""],
    choices: [["", "the whole"], ...[75, 50, 25, 10, 5, 1].map((share): [string, string] => [`0%..${share}%`, `the first ${share} %`])],
  };
  if (demand) return demand.blueprint.kind === "scenario" ? [] : [...mixed(demand), range];
  return [
    { label: "size", fields: ["size"], usual: ["4KiB"], choices: plain(SIZES) },
    percent("reads", "read"),
    percent("at random places", "random"),
    range,
  ];
}

const STEPS = Array.from({ length: 21 }, (_, n) => 5 * n);
const percent = (label: string, field: string): Control => ({ label, fields: [field], usual: ["100"], choices: STEPS.map((step) => [String(step), `${step} %`]) });

/** Shares of all lines of a workload that has several. */
function mixed({ stated }: Stated): Control[] {
  const keys = flattened(stated);
  return (["read_percent", "random_percent"] as const).flatMap((share): Control[] => {
    const fields = Object.keys(keys).filter((key) => key.startsWith("lines[") && key.endsWith(share));
    const usual = fields.map((key) => keys[key] ?? "");
    const label = share === "read_percent" ? "reads" : "at random places";
    const choices: [string, string][] = [["", "as described"], ...STEPS.map((step): [string, string] => [String(step), `${step} %`])];
    return fields.length ? [{ label, fields, usual, choices }] : [];
  });
}

/** A number and its unit. */
function quantity(text: string): { value: number; unit: string } | null {
  const found = /^([\d_.]+)\s*([A-Za-z/%]*)$/.exec(text);
  const value = Number(found?.[1]?.replaceAll("_", ""));
  return found && value > 0 ? { value, unit: found[2] ?? "" } : null;
}

/** So many times a quantity, as text: with three digits, or whole where what it was is whole and has no unit. */
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

/** By how many times a control's fields are changed. */
function factorOf({ fields, usual }: Control, values: Record<string, string>): number {
  const [now, was] = [quantity(values[fields[0] ?? ""] ?? usual[0] ?? ""), quantity(usual[0] ?? "")];
  return now && was ? (now.value * size(now.unit)) / (was.value * size(was.unit)) : 1;
}

const size = (unit: string) => ({ KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 })[unit] ?? 1;

let ids = 0;

/** A control as a row of the page. */
export function shown(control: Control, entry: Entry, change: Change): HTMLElement {
  const id = `control-${ids++}`;
  const label = html("label", { for: id }, control.label);
  const { fields, usual } = control;
  const now = () => entry.values[fields[0] ?? ""] ?? usual[0] ?? "";
  const set = (texts: string[]) => change(Object.fromEntries(fields.map((field, n) => [field, texts[n] === usual[n] ? null : (texts[n] ?? null)])));
  if (control.choices && !isScale(control)) {
    const isMixed = usual.some((text) => text !== "") && fields.length > 1;
    const value = isMixed ? (entry.values[fields[0] ?? ""] ?? "") : now();
    const options = control.choices.map(([choice, name]) => html("option", { value: choice, selected: choice === value }, name));
    const pick = html("select", { id }, ...options);
    pick.addEventListener("change", () => set(fields.map((_, n) => (pick.value === "" ? (usual[n] ?? "") : pick.value))));
    return html("div", { class: "control" }, label, pick);
  }
  const said = html("output", { for: id });
  const slider = html("input", { id, type: "range", ...scaleOf(control) });
  const texts = () => {
    const at = Number(slider.value);
    if (control.choices) return fields.map(() => control.choices?.[at]?.[0] ?? "");
    const factor = control.doubles ? 2 ** at : Number((10 ** (at / 100)).toPrecision(6));
    return usual.map((text) => times(text, factor));
  };
  const tell = () => {
    const first = now();
    const name = control.choices?.find(([choice]) => choice === first)?.[1] ?? first;
    const factor = Number(factorOf(control, entry.values).toPrecision(2));
    said.textContent = fields.length > 1 && factor !== 1 ? `${name}, ${factor} times` : name;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  slider.value = String(placeOf(control, entry.values, now()));
  tell();
  slider.addEventListener("input", () => {
    set(texts());
    tell();
  });
  return html("div", { class: "control" }, label, said, slider);
}

/** Whether what may be chosen lies on a line. */
function isScale({ choices, fields }: Control): boolean {
  return fields.length === 1 && choices !== undefined && choices.length > 8 && choices[0]?.[0] !== "";
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
