/** Files dropped on the page: descriptions, and results to compare with. They are read here; nothing is sent. */

import type { Engine, Stated, Told } from "./engine";
import type { Series } from "./report";
import type { Trace } from "./state";

/** Size limit of a file, since every question of a replay carries it. */
const BYTES_MAX = 4e6;

/** The contents of a file: a system, a workload, faults, a trace, or points next to the curves. */
export type Taken = { stated: Stated } | { faults: string } | { trace: Trace } | { series: Series[] };

export async function taken(file: File, engine: Engine): Promise<Taken> {
  if (file.size > BYTES_MAX) {
    const mb = (bytes: number) => (bytes / 1e6).toFixed(0);
    throw new Error(`${mb(file.size)} MB; the page reads up to ${mb(BYTES_MAX)} MB, use headstack trace replay for larger traces`);
  }
  const text = await file.text();
  if (/^\s*\[\[fault\]\]/m.test(text) && file.name.endsWith(".toml")) {
    await engine.ask({ ask: "faults", file: file.name, text });
    return { faults: text };
  }
  if (file.name.endsWith(".toml")) {
    const stated = await engine.ask<Stated>({ ask: "text", file: file.name, text });
    if (!stated) throw new Error("cannot be read");
    return { stated };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const summary = await engine.ask<Omit<Trace, "file" | "text">>({ ask: "trace", file: file.name, text, device: null });
    if (!summary) throw new Error("cannot be read");
    return { trace: { file: file.name, text, ...summary } };
  }
  if (isFio(value)) return { series: fio(file.name, value) };
  const told = await engine.ask<Told[]>({ ask: "results", text });
  const rows = (told ?? []).flatMap((one) => ("done" in one ? [one.done.row] : []));
  const points = rows.map((row) => ({ x: Number(row.iops), y: Number(row.mean_ms), name: `${String(row.system)}, ${String(row.workload)}` }));
  return { series: [pointsOf(file.name, points)] };
}

interface Direction {
  iops: number;
  total_ios: number;
  lat_ns?: { mean: number };
  clat_ns?: { mean: number };
  /** Before fio 3, in microseconds. */
  lat?: { mean: number };
}
type Job = { jobname: string } & Record<"read" | "write" | "trim", Direction>;

function isFio(value: unknown): value is { jobs: Job[] } {
  return typeof value === "object" && value !== null && Array.isArray((value as { jobs?: unknown }).jobs);
}

/** A point a job: requests of all kinds a second, and their mean latency. */
export function fio(name: string, { jobs }: { jobs: Job[] }): Series[] {
  const points = jobs.flatMap((job) => {
    const all = [job.read, job.write, job.trim].filter((one) => one && one.iops > 0);
    const iops = all.reduce((sum, one) => sum + one.iops, 0);
    const count = all.reduce((sum, one) => sum + one.total_ios, 0);
    const mean = (one: Direction) => (one.lat_ns?.mean ?? one.clat_ns?.mean ?? 1000 * (one.lat?.mean ?? NaN)) / 1e6;
    const y = all.reduce((sum, one) => sum + mean(one) * one.total_ios, 0) / count;
    return iops > 0 && Number.isFinite(y) ? [{ x: iops, y, name: job.jobname }] : [];
  });
  if (!points.length) throw new Error("it has no results of fio");
  return [pointsOf(name, points)];
}

function pointsOf(name: string, points: { x: number; y: number; name: string }[]): Series {
  const none = points.map(() => null);
  return {
    name,
    x: points.map(({ x }) => x),
    y: points.map(({ y }) => y),
    labels: points.map(() => ""),
    names: points.map((point) => point.name),
    marks: points.map(() => "open"),
    low: none,
    high: none,
    low_x: [],
    high_x: [],
    p99: [],
    mark: null,
    mark_at_most: false,
    published: false,
    colour: "cyan",
    dash: 0,
    shape: "diamond",
  };
}
