/** A report with the simulator: a selected curve opens in the explorer, next to its variant. */

import { html } from "./dom";
import { Explorer } from "./explore";
import "./page";
import type { Taken } from "./report";
import { fromHash, type State } from "./state";

const USUAL = { most: 1000, shows: "mean", inside: null } as const;
const REQUESTS = 3000;

/** The curve as it is, pinned, and a copy to be changed. */
function stateOf({ system, demand, values, load, loads, at }: Taken): State {
  const { requests = String(REQUESTS), ...others } = values;
  const entry = { system, demand, values: others, pinned: true };
  const entries = [entry, { ...entry, values: { ...others }, pinned: false }];
  const most = load === "rate" ? Math.max(...loads) : USUAL.most;
  return { ...USUAL, most, requests: Number(requests), entries, selected: 1, load, loads, at };
}

const closes = html("button", { type: "button", class: "closes" }, "back to the report");
const dialog = html("dialog", { class: "taken-up", "aria-label": "Explore storage" }, closes);
let explorer: Explorer | null = null;
/** The report's part of the address, restored when the explorer is closed. */
let before = "";

function opened(state: State): void {
  before = location.hash.includes("of=") ? "" : location.hash;
  document.body.append(dialog);
  dialog.showModal();
  if (explorer) return explorer.show(state);
  explorer = new Explorer(dialog, state);
  void explorer.start();
}

closes.addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => {
  dialog.remove();
  history.replaceState(null, "", before || location.pathname);
});
addEventListener("vary", (event) => opened(stateOf((event as CustomEvent<Taken>).detail)));
if (location.hash.includes("of=")) opened(fromHash(location.hash, { ...USUAL, requests: REQUESTS, entries: [], selected: 0, load: "depth", loads: [], at: 16 }));
