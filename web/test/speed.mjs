// Times an explorer in Chromium, and prints what was found as JSON: speed.mjs CHROMIUM PAGE SLIDER DRAGS
import { addressOf, launch, newPage } from "./chromium.mjs";

const [program, file, slider, drags] = process.argv.slice(2);
const browser = await launch(program);
const page = await newPage(browser, { viewport: { width: 1300, height: 900 } });
await page.addInitScript(() => {
  window.blocked = [];
  new PerformanceObserver((list) => window.blocked.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: "longtask", buffered: true });
  // By the page's own clock: when the answer first has a figure.
  const seen = new MutationObserver(() => {
    if (!/IO\/s/.test(document.querySelector(".answer")?.textContent ?? "")) return;
    window.first_curve_ms = performance.now();
    seen.disconnect();
  });
  seen.observe(document, { subtree: true, childList: true, characterData: true });
});
await page.goto(addressOf(file));
await page.waitForFunction(() => window.first_curve_ms);
await page.waitForTimeout(2000);
const most = () => page.evaluate(() => Math.max(0, ...window.blocked.splice(0)));
const started = await page.evaluate(() => ({
  first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  first_curve_ms: window.first_curve_ms,
}));
const blocked_starting_ms = await most();

/** From each event of a slider to the frame with another curve, and to the last one that it leads to. */
const dragged = await page.evaluate(async ([drags, name]) => {
  const lines = () => [...document.querySelectorAll(".first .paper path.line")].map((line) => line.getAttribute("d")).join();
  const label = [...document.querySelectorAll("label")].find((one) => one.textContent === name);
  const input = document.getElementById(label.htmlFor);
  const found = { coarse_ms: [], fine_ms: [] };
  const frame = () => new Promise((next) => requestAnimationFrame(next));
  for (let n = 0; n < drags; n++) {
    const before = lines();
    const began = performance.now();
    // Never to where it was: a curve that is known is there at once.
    input.value = String(Number(input.max) - 1 - n);
    input.dispatchEvent(new Event("input", { bubbles: true }));
    while (lines() === before) await frame();
    found.coarse_ms.push(performance.now() - began);
    let [now, last] = [lines(), performance.now()];
    for (let quiet = last; performance.now() - quiet < 400; await frame()) {
      if (lines() === now) continue;
      [now, last, quiet] = [lines(), performance.now(), performance.now()];
    }
    found.fine_ms.push(last - began);
  }
  return found;
}, [Number(drags), slider]);
const blocked_dragging_ms = await most();
await browser.close();
console.log(JSON.stringify({ ...started, blocked_starting_ms, ...dragged, blocked_dragging_ms }));
