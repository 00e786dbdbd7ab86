/** The contents of a report, as documented in python/headstack/report/figures.py. */

export type Cell = string | number | boolean | null;

export interface Axis {
  label: string;
  log: boolean;
  /** Whether the reader may switch between a linear and a logarithmic axis. */
  switch: boolean;
}

type Places = (number | null)[];
export type Shape = "circle" | "square" | "triangle" | "diamond" | "cross" | "down" | "asterisk";

/** Style of a point among many. */
export type Mark = "full" | "open" | "cross";

export interface Series {
  name: string;
  /** Values of x. A published point that has only x or y is drawn as a rule across the figure. */
  x: Places;
  y: Places;
  labels: string[];
  low: Places;
  high: Places;
  /** Positions of the interval's ends on x; empty if they are at the points. */
  low_x: Places;
  high_x: Places;
  /** 99th percentile, shown next to a mean. */
  p99: Places;
  mark: [number, number] | null;
  mark_at_most: boolean;
  published: boolean;
  /** Styles of points without a line between them; empty for a line. */
  marks: Mark[];
  /** Name of each point. */
  names: string[];
  /** Style, chosen for the whole report by python/headstack/report/looks.py. */
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
  /** Load whose figures are shown first. */
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
  /** Description of the figure. */
  says: string;
  x_is_percentile: boolean;
  limits: Limit[];
  /** Meaning of the marks of points. */
  key: [Mark, string][];
  /** Curves that can be varied on pages with the simulator, and reasons why other curves cannot. */
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
  /** Description of the figure. */
  says: string;
  /** Whether the series of a group are stacked. */
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
  /** Description of the figure. */
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
  /** Description of the figure. */
  says: string;
}

export interface Table {
  kind: "table";
  name: string;
  title: string;
  columns: string[];
  rows: Cell[][];
  note: string;
  /** Formatted cells with significant digits, by column; a column is empty or has one text per row. */
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

/**
 * Provenance as packed by html.py. The description is an index into the packed list, which contains each distinct
 * description once.
 */
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
  /** Method of the report. */
  remarks: string;
}

/** Input of the page. */
export interface Given {
  report: Report;
  /** Descriptions of runs: a JSON list, deflated (zlib), in base64. */
  descriptions: string;
  /** Whether the page is a single figure in a notebook, without heading and contents. */
  inline: boolean;
}
