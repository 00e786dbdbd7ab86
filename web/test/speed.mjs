// Times the explorer in Chromium, as benches/explorer.py asks: speed.mjs CHROMIUM DRAGS PAGE SLIDER...; --profile FILE writes
// what the page's thread did while it was dragged.
import { chromium } from "playwright-core";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [program, drags, file, slider, profile] = process.argv.slice(2);
const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath: program, args });
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
await page.addInitScript(() => {
  window.blocked = [];
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) window.blocked.push([startTime, duration]);
  }).observe({ type: "longtask", buffered: true });
  // Moments of the page's own clock: when the first figure stood in its answer.
  const seen = new MutationObserver(() => {
    if (!/IO\/s/.test(document.querySelector(".answer")?.textContent ?? "")) return;
    window.first_curve_ms = performance.now();
    seen.disconnect();
  });
  addEventListener("DOMContentLoaded", () => seen.observe(document.body, { subtree: true, childList: true, characterData: true }));
});
await page.goto(pathToFileURL(file).href);
await page.waitForFunction(() => window.first_curve_ms, null, { timeout: 60000 });
const idle = () => page.waitForFunction(() => document.documentElement.dataset.busy === undefined || document.documentElement.dataset.busy === "no", null, { timeout: 60000 });
await idle();
await page.waitForTimeout(1500);
const started = await page.evaluate(() => ({
  first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
  first_curve_ms: window.first_curve_ms,
  blocked_ms: Math.max(0, ...window.blocked.splice(0).map(([, duration]) => duration)),
}));
const client = await page.context().newCDPSession(page);
if (profile) {
  await client.send("Profiler.enable");
  await client.send("Profiler.setSamplingInterval", { interval: 200 });
  await client.send("Profiler.start");
}
// From the event of a slider to the frame that draws another curve.
const times = await page.evaluate(async ([drags, label]) => {
  const lines = () => [...document.querySelectorAll(".first .paper path.line")].map((one) => one.getAttribute("d")).join();
  const input = document.getElementById([...document.querySelectorAll("label")].find((one) => one.textContent === label).htmlFor);
  const found = [];
  const middle = (Number(input.min) + Number(input.max)) / 2;
  for (let n = 0; n < drags; n++) {
    const before = lines();
    const began = performance.now();
    input.value = String(Math.round(middle - 1 - (n % (middle - Number(input.min) - 1))));
    input.dispatchEvent(new Event("input", { bubbles: true }));
    while (lines() === before) await new Promise((next) => requestAnimationFrame(next));
    found.push(performance.now() - began);
    await new Promise((next) => setTimeout(next, 150));
  }
  return found;
}, [Number(drags), slider]);
if (profile) writeFileSync(profile, JSON.stringify((await client.send("Profiler.stop")).profile));
const blocked = await page.evaluate(() => window.blocked.map(([, duration]) => duration));
await browser.close();
console.log(JSON.stringify({ ...started, drags_ms: times, blocked_dragging_ms: Math.max(0, ...blocked) }));
