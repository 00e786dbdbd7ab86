/** The contents of a report, as documented in python/headstack/report/figures.py. */

export type Cell = string | number | boolean | null;

export interface Axis {
  label: string;
  log: boolean;
  /** A reader may switch between a linear and a logarithmic one. */
  switch: boolean;
}

type Places = (number | null)[];
export type Shape = "circle" | "square" | "triangle" | "diamond" | "cross" | "down" | "asterisk";

/** How a point among many is drawn. */
export type Mark = "full" | "open" | "cross";

export interface Series {
  name: string;
  /** A published point that has only one of x and y is a rule across the figure. */
  x: Places;
  y: Places;
  labels: string[];
  low: Places;
  high: Places;
  /** The x positions of the interval's ends; empty if at the points. */
  low_x: Places;
  high_x: Places;
  /** The 99th percentile, next to a mean. */
  p99: Places;
  mark: [number, number] | null;
  mark_at_most: boolean;
  published: boolean;
  /** For points without a line between them; empty for a line. */
  marks: Mark[];
  /** The subject of each point. */
  names: string[];
  /** Looks are chosen for the whole report by python/headstack/report/looks.py. */
  colour: string;
  dash: number;
  shape: Shape;
}

/** A curve that can be varied, on pages with the simulator: runs that differ only in load. */
export interface Taken {
  name: string;
  system: string;
  demand: string;
  values: Record<string, string>;
  load: "depth" | "rate";
  loads: number[];
  /** The load whose figures are shown first. */
  at: number;
}

/** A rule across the figure, at a value of the y axis. */
export interface Limit {
  value: number;
  label: string;
}

export interface Lines {
  kind: "lines";
  name: string;
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
  note: string;
  /** Its description. */
  says: string;
  x_is_percentile: boolean;
  limits: Limit[];
  /** The meaning of the marks of points. */
  key: [Mark, string][];
  /** On pages with the simulator: curves that can be varied, and why others cannot. */
  taken?: Taken[];
  refused?: string[];
}

export interface Bars {
  kind: "bars";
  name: string;
  title: string;
  y: Axis;
  groups: string[];
  series: Series[];
  note: string;
  /** Its description. */
  says: string;
  /** The series of a group are stacked. */
  stacked: boolean;
}

export interface Grid {
  kind: "grid";
  name: string;
  title: string;
  rows: string[];
  row_label: string;
  columns: string[];
  column_label: string;
  values: (number | null)[][];
  unit: string;
  published: (number | null)[][];
  signed: boolean;
  note: string;
  /** Its description. */
  says: string;
}

export interface Heat {
  kind: "heat";
  name: string;
  title: string;
  x: Axis;
  x_range: [number, number];
  y: Axis;
  y_range: [number, number];
  values: number[][];
  unit: string;
  note: string;
  /** Its description. */
  says: string;
}

export interface Table {
  kind: "table";
  name: string;
  title: string;
  columns: string[];
  rows: Cell[][];
  note: string;
  /** The formatted cells, with significant digits; empty, or one for each row. */
  texts: string[][];
  says: string;
}

export type Figure = Lines | Bars | Grid | Heat | Table;

export interface Claim {
  id: string;
  says: string;
  verdict: string;
  evidence: string;
  backing: readonly (readonly [string, string])[];
  rows: Table | null;
}

export interface Section {
  title: string;
  text: string;
  figures: Figure[];
}

/** As html.py packs it: the description is a place in the packed list, which holds equal ones once. */
export interface Provenance {
  system: string;
  workload: string;
  seed: number;
  version: string;
  description_hash: string;
  description: number;
}

export interface Report {
  title: string;
  question: string;
  summary: string;
  sections: Section[];
  claims: Claim[];
  runs: Provenance[];
  version: string;
  sources: string[];
  /** Its method. */
  remarks: string;
}

/** The input of the page. */
export interface Given {
  report: Report;
  /** The descriptions of runs: a JSON list, deflated (zlib) and in base64. */
  descriptions: string;
  /** A figure on its own in a notebook: no heading, no contents. */
  inline: boolean;
}
