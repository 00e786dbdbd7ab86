/** Published claims and their verdicts: counts, a filter, expandable evidence. */

import { fold, html, paragraphs } from "./dom";
import type { Claim } from "./report";
import { table } from "./table";

/** The verdicts in order, each with a sign and a style, so that colour is not the only difference. */
const VERDICTS: Record<string, { sign: string; look: string }> = {
  predicted: { sign: "✓", look: "strong" },
  fitted: { sign: "≈", look: "plain" },
  configured: { sign: "=", look: "plain" },
  arithmetic: { sign: "+", look: "plain" },
  missed: { sign: "✗", look: "warning" },
  contradicted: { sign: "≠", look: "warning" },
  "not testable": { sign: "?", look: "unknown" },
};

export function verdicts(claims: readonly Claim[]): [string, number][] {
  const counts = new Map(Object.keys(VERDICTS).map((verdict) => [verdict, 0]));
  for (const { verdict } of claims) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].filter(([, count]) => count > 0);
}

export function badge(verdict: string, count?: number): HTMLElement {
  const { sign, look } = VERDICTS[verdict] ?? { sign: "•", look: "unknown" };
  const text = count === undefined ? verdict : `${count} ${verdict}`;
  return html("span", { class: `badge ${look}` }, html("span", { "aria-hidden": "true" }, sign), ` ${text}`);
}

export function claimsOf(claims: readonly Claim[]): HTMLElement {
  const list = html("div", { class: "claims" }, ...claims.map(one));
  const buttons = [["", claims.length] as [string, number], ...verdicts(claims)].map(([verdict, count]) => {
    const button = html("button", { type: "button", "aria-pressed": String(!verdict) }, verdict ? badge(verdict, count) : `all ${count}`);
    button.addEventListener("click", () => {
      buttons.forEach((other) => (other.ariaPressed = String(other === button)));
      list.querySelectorAll<HTMLElement>(":scope > details").forEach((claim) => {
        claim.hidden = verdict !== "" && claim.dataset["verdict"] !== verdict;
      });
    });
    return button;
  });
  return html("div", {}, html("div", { class: "filter", role: "group", "aria-label": "Claims by verdict" }, ...buttons), list);
}

function one(claim: Claim): HTMLElement {
  const summary = [html("code", {}, claim.id), html("span", { class: "says" }, claim.says), badge(claim.verdict)];
  const attributes = { id: `claim-${claim.id}`, "data-verdict": claim.verdict, class: "claim printed" };
  return fold(attributes, summary, () => [
    ...paragraphs(claim.evidence),
    ...(claim.backing.length > 0 ? [backing(claim.backing)] : []),
    ...(claim.rows ? [table(claim.rows)] : []),
  ]);
}

/** The evidence for a claim, each with its description. */
function backing(told: Claim["backing"]): HTMLElement {
  return html("dl", { class: "backing" }, ...told.flatMap(([what, text]) => [html("dt", {}, what), html("dd", {}, text)]));
}
