/** A report with the simulator in it: whatever curve is taken up opens in the explorer, beside what it is varied to. */

import { html } from "./dom";
import { Explorer } from "./explore";
import "./page";
import type { Taken } from "./report";
import { fromHash, type State } from "./state";

const USUAL = { most: 1000, requests: 3000, shows: "mean" } as const;

/** The curve as it is, pinned, and the same again to be changed. */
function stateOf({ system, demand, values, load, loads, at }: Taken): State {
  const entry = { system, demand, values, pinned: true };
  return { ...USUAL, entries: [entry, { ...entry, values: { ...values }, pinned: false }], selected: 1, load, loads, at };
}

const closes = html("button", { type: "button", class: "closes" }, "back to the report");
const dialog = html("dialog", { class: "taken-up", "aria-label": "Explore storage" }, closes);
let explorer: Explorer | null = null;
/** Where the report was, which the address tells again when the explorer is closed. */
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
if (location.hash.includes("of=")) opened(fromHash(location.hash, { ...USUAL, entries: [], selected: 0, load: "depth", loads: [], at: 16 }));
