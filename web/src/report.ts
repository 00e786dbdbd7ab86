/** What a report holds, as python/headstack/report/figures.py describes it field by field. */

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
  /** Where along x the ends of the interval lie; empty where that is at the points. */
  low_x: Places;
  high_x: Places;
  /** The 99th percentile, beside a mean. */
  p99: Places;
  mark: [number, number] | null;
  mark_at_most: boolean;
  published: boolean;
  /** Of points alone, without a line between them; empty for a line. */
  marks: Mark[];
  /** What each point is of. */
  names: string[];
  /** Looks are chosen for the whole report by python/headstack/report/looks.py. */
  colour: string;
  dash: number;
  shape: Shape;
}

/** A curve that can be taken up, on pages with the simulator: runs that differ in load alone. */
export interface Taken {
  name: string;
  system: string;
  demand: string;
  values: Record<string, string>;
  load: "depth" | "rate";
  loads: number[];
  /** The load of which figures are shown first. */
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
  /** What it shows. */
  says: string;
  x_is_percentile: boolean;
  limits: Limit[];
  /** What the marks of points say. */
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
  /** What it shows. */
  says: string;
  /** The series of a group stand on each other. */
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
  /** What it shows. */
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
  /** What it shows. */
  says: string;
}

export interface Table {
  kind: "table";
  name: string;
  title: string;
  columns: string[];
  rows: Cell[][];
  note: string;
  /** How cells are written, with the digits that are known; empty, or one for each row. */
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
  /** How it was found. */
  remarks: string;
}

/** What the page is given. */
export interface Given {
  report: Report;
  /** The descriptions of runs: a JSON list, deflated (zlib) and in base64. */
  descriptions: string;
  /** A figure on its own in a notebook: no heading, no contents. */
  inline: boolean;
}
