// Opens the explorer in Chromium, does what people do with it, and prints what was there as JSON: explore.mjs CHROMIUM PAGE FILE...
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [program, file, ...dropped] = process.argv.slice(2);
const DRAGS = 60;
const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking", "--enable-precise-memory-info"];
const browser = await chromium.launch({ executablePath: program, args });
const address = pathToFileURL(file).href;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const found = { errors: [], requests: [] };

async function opened(hash = "", options = {}) {
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 }, ...options });
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && found.errors.push(message.text()));
  page.on("pageerror", (error) => found.errors.push(error.message));
  page.on("request", (request) => /^(https?|ws|file):/.test(request.url()) && !request.url().startsWith(address) && found.requests.push(request.url()));
  await page.addInitScript(() => {
    window.blocked = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.blocked = Math.max(window.blocked, duration);
    }).observe({ type: "longtask", buffered: true });
  });
  const started = Date.now();
  await page.goto(address + hash);
  await answered(page);
  return { page, first_curve_ms: Date.now() - started };
}

const answered = (page) => page.waitForFunction(() => /IO\/s/.test(document.querySelector(".answer").textContent), null, { timeout: 60000 });
const line = (page) => page.locator(".first .paper path.line").evaluateAll((all) => all.map((path) => path.getAttribute("d")));
/** Until no point is coarse any more: the answer does not change for a while. */
async function settled(page) {
  let before = "";
  for (let same = 0; same < 4; ) {
    await page.waitForTimeout(250);
    const texts = [".answer", ".details", ".reproduced"].map((part) => page.locator(part).innerText());
    const now = JSON.stringify([await line(page), ...(await Promise.all(texts))]);
    same = now === before ? same + 1 : 0;
    before = now;
  }
}
const shown = async (page) => ({
  answer: await page.locator(".answer").innerText(),
  command: await page.locator(".command").innerText(),
  hash: decodeURIComponent(new URL(page.url()).hash),
  cells: await page.locator(".details .scroll tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))),
});

async function drag(page, label, to) {
  const slider = page.getByLabel(label, { exact: true });
  await slider.evaluate((input, value) => {
    input.value = String(value);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, to);
}

async function dragged() {
  const { page, first_curve_ms } = await opened();
  await settled(page);
  const before = await shown(page);
  await drag(page, "spindle speed", -30);
  const began = Date.now();
  const lines = JSON.stringify(await line(page));
  const isNew = (old) => {
    const drawn = [...document.querySelectorAll(".first .paper path.line")].map((path) => path.getAttribute("d"));
    return JSON.stringify(drawn) !== old;
  };
  await page.waitForFunction(isNew, lines, { timeout: 60000 });
  const coarse_ms = Date.now() - began;
  await settled(page);
  const after = await shown(page);
  // By the keyboard, too.
  await page.getByLabel("spindle speed", { exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const keyed = await shown(page);
  const blocked_ms = await page.evaluate(() => window.blocked);
  await page.close();
  return { before, after, keyed, first_curve_ms, coarse_ms, blocked_ms };
}

/** What an address tells is shown, and other ways of opening the same state give the same. */
async function addressed(hash) {
  const { page } = await opened(hash);
  await settled(page);
  const told = await shown(page);
  await page.close();
  return told;
}

async function pinned() {
  const { page } = await opened();
  await page.getByRole("button", { name: "pin", exact: true }).click();
  await drag(page, "seek times", 30);
  await settled(page);
  const told = { chips: await page.locator(".chip .name").allInnerTexts(), lines: (await line(page)).length, ...(await shown(page)) };
  await page.getByLabel("Add a system").selectOption("man3735");
  await settled(page);
  const added = await page.locator(".chip .name").allInnerTexts();
  await page.close();
  return { ...told, added };
}

async function droppedOn() {
  const { page } = await opened();
  const said = [];
  for (const path of dropped) {
    const name = path.split("/").at(-1);
    await page.evaluate(([text, name]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name));
      dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, [readFileSync(path, "utf8"), name]);
    await settled(page);
    said.push({ name, chips: await page.locator(".chip .name").allInnerTexts(), marks: await page.locator(".first .paper .mark.open").count(), answer: await page.locator(".answer").innerText() });
  }
  await page.close();
  return said;
}

/** Megabytes of the page's memory before and after many drags. */
async function remembered() {
  const { page } = await opened();
  await settled(page);
  const client = await page.context().newCDPSession(page);
  const memory = async () => {
    await client.send("HeapProfiler.collectGarbage");
    return page.evaluate(() => [performance.memory.usedJSHeapSize / 1e6, document.querySelectorAll("*").length]);
  };
  const drags = async (count) => {
    for (let n = 0; n < count; n++) await drag(page, "spindle speed", (n % 60) - 30);
    await settled(page);
  };
  await drags(DRAGS);
  const before = await memory();
  await drags(3 * DRAGS);
  const after = await memory();
  await page.close();
  return { before, after };
}

async function narrow() {
  const { page } = await opened("", { viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  await settled(page);
  const told = await page.evaluate(() => {
    const root = document.documentElement;
    return { wide: root.scrollWidth, ground: getComputedStyle(root).backgroundColor };
  });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  told.violations = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 140)}`));
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  const printed = await page.evaluate(() => ({
    panel: getComputedStyle(document.querySelector(".panel")).display,
    lines: document.querySelectorAll(".first .paper path.line").length,
  }));
  await page.close();
  return { ...told, printed };
}

const STATE = "#load=depth&at=32&requests=1000&shows=p99&of=nearline-24-raid6%7Cfile-server%7Cgroups%5B0%5D.stripe_unit%3D64KiB";
for (const [name, look] of Object.entries({ dragged, pinned, dropped: droppedOn, remembered, narrow, addressed: () => addressed(STATE) })) {
  found[name] = await look();
}
await browser.close();
console.log(JSON.stringify(found));
