/** The values behind a figure, as a table. */

import { cell } from "./heat";
import { nameOf } from "./looks";
import type { Bars, Cell, Figure, Grid, Heat, Lines, Mark, Series, Table } from "./report";

/** Largest number of cells listed for a heat map. */
const CELLS_MAX = 1000;

export function dataOf(figure: Figure): Table {
  const head = { kind: "table" as const, name: `${figure.name}-data`, title: `${figure.title}: data`, note: "", says: "", texts: [] };
  switch (figure.kind) {
    case "lines":
      return { ...head, ...ofLines(figure) };
    case "bars":
      return { ...head, ...ofBars(figure) };
    case "grid":
      return { ...head, ...ofGrid(figure) };
    case "heat":
      return { ...head, ...ofHeat(figure) };
    case "table":
      return figure;
  }
}

type Rows = Pick<Table, "columns" | "rows"> & { note?: string };

const HEADS: Record<string, string> = { names: "of", labels: "at", marks: "known" };

function says(figure: Lines, mark: Mark | undefined): string {
  return figure.key.find(([one]) => one === mark)?.[1] ?? "";
}

function ofLines(figure: Lines): Rows {
  const has = (of: "names" | "labels" | "low" | "high" | "p99" | "marks") => figure.series.some((series) => series[of].length);
  const optional = (["names", "labels", "low", "high", "p99", "marks"] as const).filter(has);
  const columns = ["series", figure.x.label, figure.y.label, ...optional.map((name) => HEADS[name] ?? name)];
  const told = (series: Series, name: (typeof optional)[number], n: number): Cell =>
    name === "marks" ? says(figure, series.marks[n]) : (series[name][n] ?? null);
  const rows = figure.series.flatMap((series) =>
    series.x.map((x, n): Cell[] => [nameOf(series), x, series.y[n] ?? null, ...optional.map((name) => told(series, name, n))]),
  );
  return { columns, rows };
}

function ofBars(figure: Bars): Rows {
  const rows = figure.groups.map((group, n): Cell[] => [group, ...figure.series.map((series) => series.y[n] ?? null)]);
  return { columns: ["of", ...figure.series.map((series) => `${nameOf(series)}: ${figure.y.label}`)], rows };
}

function ofGrid(figure: Grid): Rows {
  const rows = figure.rows.map((row, n): Cell[] => [row, ...(figure.values[n] ?? [])]);
  return { columns: [figure.row_label, ...figure.columns], rows };
}

function ofHeat(figure: Heat): Rows {
  const cells = figure.values.flatMap((values, row) => values.flatMap((value, column) => (value === 0 ? [] : [{ value, row, column }])));
  cells.sort((one, other) => other.value - one.value);
  const rows = cells.slice(0, CELLS_MAX).map(({ value, row, column }): Cell[] => [...cell(figure, "x", column), ...cell(figure, "y", row), value]);
  const axes = [figure.x.label, figure.y.label].flatMap((label) => [`${label} from`, "to"]);
  const note = cells.length > CELLS_MAX ? `The ${CELLS_MAX} largest of ${cells.length} non-empty cells.` : "";
  return { columns: [...axes, figure.unit], rows, note };
}
