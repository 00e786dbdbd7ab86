/** Faults of a system, as files named by their content, so that an address, a command and the page mean the same. */

import { flattened } from "./controls";
import type { Stated } from "./engine";

interface Fault {
  /** The start of its file name, before the amount. */
  name: string;
  label: string;
  /** Its amounts: the part of the file name, and the label; some faults have no amount. */
  amounts: [value: string, label: string][];
  usual: string;
  /** Whether a system can have it. */
  meets: (is: { array: boolean; cache: boolean }) => boolean;
  /** The tables of its schedule; a fault of one device applies to the first member of an array. */
  tables: (amount: string, member: string) => string[];
}

const ALWAYS = () => true;
const SHARES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
const PERCENTS = SHARES.map((share): [string, string] => [`${share}-percent`, `${share} %`]);
const TIMES = ["1ms", "2ms", "5ms", "10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s"].map((time): [string, string] => [time, `${time} more`]);
const LENGTHS = ["16MiB", "64MiB", "256MiB", "1GiB", "4GiB", "16GiB", "64GiB", "256GiB", "1TiB", "4TiB"];
const STRETCHES = LENGTHS.map((length): [string, string] => [length, `in the first ${length}`]);
const percent = (amount: string) => `percent = ${Number.parseFloat(amount).toFixed(2)}`;
const stretch = (length: string) => `ranges = [{ offset = "0B", length = "${length}" }]`;
const MEMBER = "d0";
const FAILS = `at = "0s"\nwhat = "member-fails"\nmember = "${MEMBER}"`;

const FAULTS: Fault[] = [
  { name: "member-failed", label: "a drive has failed", amounts: [], usual: "", meets: ({ array }) => array, tables: () => [FAILS] },
  {
    name: "member-rebuilt",
    label: "a drive is being rebuilt",
    amounts: [],
    usual: "",
    meets: ({ array }) => array,
    tables: () => [FAILS, `at = "1ms"\nwhat = "member-returns"\nmember = "${MEMBER}"`],
  },
  {
    name: "media-errors",
    label: "sectors cannot be read",
    amounts: STRETCHES,
    usual: "1GiB",
    meets: ALWAYS,
    tables: (length, member) => [`at = "0s"\nwhat = "media-error"\n${stretch(length)}${member}`],
  },
  {
    name: "weak-sectors",
    label: "sectors need three more revolutions",
    amounts: STRETCHES,
    usual: "16GiB",
    meets: ALWAYS,
    tables: (length, member) => [`at = "0s"\nwhat = "weak-sectors"\nturns = 3\n${stretch(length)}${member}`],
  },
  {
    name: "fail-slow",
    label: "a slow drive",
    amounts: TIMES,
    usual: "20ms",
    meets: ALWAYS,
    tables: (amount, member) => [`at = "0s"\nwhat = "fail-slow"\ntime = "${amount}"${member}`],
  },
  {
    name: "late-answers",
    label: "answers delayed by 50 ms",
    amounts: PERCENTS,
    usual: "1-percent",
    meets: ALWAYS,
    tables: (amount) => [`at = "0s"\nwhat = "latency-spike"\ntime = "50ms"\n${percent(amount)}`],
  },
  {
    name: "battery-failed",
    label: "the cache has lost its battery",
    amounts: [],
    usual: "",
    meets: ({ cache }) => cache,
    tables: () => [`at = "0s"\nwhat = "battery-fails"`],
  },
  {
    name: "link-errors",
    label: "errors on the link",
    amounts: PERCENTS,
    usual: "0.1-percent",
    meets: ALWAYS,
    tables: (amount) => [`at = "0s"\nwhat = "link-errors"\n${percent(amount)}\ntime-out = "1s"`],
  },
];

const fileOf = ({ name, usual }: Fault, amount = usual) => `${[name, amount].filter(Boolean).join("-")}.toml`;

function found(file: string): { fault: Fault; amount: string } | null {
  for (const fault of FAULTS) {
    const amount = ["", ...fault.amounts.map(([value]) => value)].find((one) => fileOf(fault, one) === file);
    if (amount !== undefined && (amount || !fault.amounts.length)) return { fault, amount };
  }
  return null;
}

/** The schedule for a file name and a system; `null` for other names. */
export function scheduleOf(file: string, { blueprint }: Stated): string | null {
  const of = found(file);
  const member = blueprint.kind === "array" ? `\nmember = "${MEMBER}"` : "";
  return of && of.fault.tables(of.amount, member).map((table) => `[[fault]]\n${table}\n`).join("\n");
}

/** Which of the faults a system can have, as files. */
export function faultsOf({ blueprint, stated }: Stated): [file: string, label: string][] {
  const keys = Object.keys(flattened(stated));
  const is = { array: blueprint.kind === "array", cache: keys.some((key) => key.startsWith("controller.cache.")) };
  return FAULTS.filter(({ meets }) => meets(is)).map((fault): [string, string] => [fileOf(fault), fault.label]);
}

/** The file of the same fault with its usual amount. */
export function usually(file: string): string {
  const of = found(file);
  return of ? fileOf(of.fault) : file;
}

/** The amounts of a fault, as files; none if it has no amount. */
export function amountsOf(file: string): [file: string, label: string][] {
  const of = found(file);
  return of ? of.fault.amounts.map(([value, label]): [string, string] => [fileOf(of.fault, value), label]) : [];
}
