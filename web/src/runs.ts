/** The data to reproduce each run: its exact system and workload, seed and version. */

import { fold, html } from "./dom";
import type { Provenance } from "./report";

export function runsOf(runs: readonly Provenance[], packed: string): HTMLElement {
  const descriptions = lazily(() => unpacked(packed));
  const summary = `${runs.length} run${runs.length === 1 ? "" : "s"}: exact descriptions, seeds, version`;
  return fold({ class: "runs" }, [summary], () => [html("div", { class: "scroll" }, listed(runs, descriptions))]);
}

function listed(runs: readonly Provenance[], descriptions: () => Promise<string[]>): HTMLElement {
  const heads = ["run", "system", "workload", "seed", "version", "hash", "description"];
  const body = html("tbody");
  runs.forEach((run, index) => {
    const told = html("pre", { hidden: true, tabindex: 0 });
    const button = html("button", { type: "button", "aria-expanded": "false" }, "show");
    button.addEventListener("click", async () => {
      if (!told.textContent) told.textContent = indented((await descriptions())[run.description] ?? "");
      told.hidden = !told.hidden;
      button.ariaExpanded = String(!told.hidden);
      button.textContent = told.hidden ? "show" : "hide";
    });
    const cells = [String(index + 1), run.system, run.workload, String(run.seed), run.version, html("code", {}, run.description_hash.slice(0, 12)), button];
    body.append(
      html("tr", {}, ...cells.map((cell) => html("td", {}, cell))),
      html("tr", { class: "told" }, html("td", { colspan: heads.length }, told)),
    );
  });
  return html("table", {}, html("caption", { class: "unseen" }, "Runs"), html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head)))), body);
}

function indented(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 1);
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}

async function unpacked(packed: string): Promise<string[]> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text()) as string[];
}
