// Chromium, for the programs that test and time pages.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

/** A step on a page may take this long, so that a slow machine fails no test; the tests in Python end the program later. */
const LONGEST_STEP_MS = 400_000;
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export const addressOf = (file) => pathToFileURL(file).href;

export function launch(program, ...more) {
  const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking", ...more];
  return chromium.launch({ executablePath: program, args });
}

export async function newPage(browser, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(LONGEST_STEP_MS);
  return page;
}

/** A page whose warnings and errors go into `found.errors`, and requests for anything but `address` into `found.requests`. */
export async function newWatchedPage(browser, options, found, address) {
  const page = await newPage(browser, options);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && found.errors.push(message.text()));
  page.on("pageerror", (error) => found.errors.push(error.message));
  page.on("request", (request) => {
    const url = request.url();
    const isOfPage = url.startsWith(address) || url === "about:srcdoc" || /^(data|blob):/.test(url);
    if (!isOfPage) found.requests.push(url);
  });
  return page;
}

/** Runs axe-core on a page; returns one line for each element that violates a rule, and how many rules passed. */
export async function checkAccessibility(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(readFileSync(AXE, "utf8"));
  const { violations, passes } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const lines = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 140)}`));
  return { violations: lines, passes: passes.length };
}
