// Opens the explorer in a browser, does what people do with it, and prints what was there as JSON:
// explore.mjs PROGRAM PAGE PART FILE...
import { readFileSync } from "node:fs";
import { addressOf, checkAccessibility, launch, newWatchedPage } from "./chromium.mjs";

const [program, file, part, ...files] = process.argv.slice(2);
const browser = await launch(program, "--enable-precise-memory-info", "--js-flags=--expose-gc");
const address = addressOf(file);
const found = { errors: [], requests: [] };

async function opened(hash = "", options = {}) {
  const page = await newWatchedPage(browser, { viewport: { width: 1300, height: 900 }, ...options }, found, address);
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

const answered = (page) => page.waitForFunction(() => /: /.test(document.querySelector(".answer").textContent));
const line = (page) => page.locator(".first .paper path.line").evaluateAll((all) => all.map((path) => path.getAttribute("d")));
/** Until every point is as it was asked for. */
const computed = (page) => page.waitForFunction(() => document.querySelector("main").getAttribute("aria-busy") === "false");
/** And until the command that gives the same is there, too. */
async function settled(page) {
  await computed(page);
  await page.waitForFunction(() => document.querySelector(".reproduced").getAttribute("aria-busy") === "false");
}
const shown = async (page) => ({
  answer: await page.locator(".answer").innerText(),
  command: await page.locator(".command").innerText(),
  hash: decodeURIComponent(new URL(page.url()).hash),
  notes: await page.locator(".panel .note").allInnerTexts(),
  labels: await page.locator(".panel label").allInnerTexts(),
  files: await page.locator(".reproduced details").evaluateAll((all) => all.map((one) => [one.querySelector("a").download, one.querySelector("pre").textContent])),
  cells: await page.locator(".details .scroll tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))),
});

const changed = (input, value) => {
  input.value = String(value);
  input.dispatchEvent(new Event("input", { bubbles: true }));
};
const drag = (page, label, to) => page.getByLabel(label, { exact: true }).evaluate(changed, to);

async function dragged() {
  const { page, first_curve_ms } = await opened();
  await settled(page);
  const before = await shown(page);
  const lines = JSON.stringify(await line(page));
  const began = Date.now();
  await drag(page, "spindle speed", -30);
  const isNew = (old) => {
    const drawn = [...document.querySelectorAll(".first .paper path.line")].map((path) => path.getAttribute("d"));
    return JSON.stringify(drawn) !== old;
  };
  await page.waitForFunction(isNew, lines);
  const coarse_ms = Date.now() - began;
  await settled(page);
  const after = await shown(page);
  // By the keyboard, too, and by typing.
  await page.getByLabel("spindle speed", { exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const keyed = await shown(page);
  await page.getByLabel("spindle speed, as text").fill("9000");
  await page.keyboard.press("Tab");
  await settled(page);
  const typed = await shown(page);
  await page.getByLabel("spindle speed, as text").fill("fast");
  await page.keyboard.press("Tab");
  await settled(page);
  const refused = await shown(page);
  const blocked_ms = await page.evaluate(() => window.blocked);
  await page.close();
  return { before, after, keyed, typed, refused, first_curve_ms, coarse_ms, blocked_ms };
}

/** What each address tells, which are lines of a file. */
async function addressed() {
  const told = [];
  for (const hash of readFileSync(files[0], "utf8").trim().split("\n")) {
    const { page } = await opened(hash);
    await settled(page);
    told.push(await shown(page));
    await page.close();
  }
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

/** Faults are picked, and how much of one is dragged. */
async function faulty() {
  const { page } = await opened();
  await page.getByLabel("faults", { exact: true }).selectOption({ label: "a slow drive" });
  await settled(page);
  const slow = await shown(page);
  await drag(page, "amount", 0);
  await settled(page);
  const less = await shown(page);
  // Each that a system can have, of each kind of system.
  const each = [];
  for (const system of files) {
    await page.evaluate((hash) => {
      location.hash = hash;
      dispatchEvent(new HashChangeEvent("hashchange", { newURL: location.href }));
    }, `#at=4&requests=100&of=${encodeURIComponent(`${system}|random-read-4k`)}`);
    await settled(page);
    const labels = (await page.getByLabel("faults", { exact: true }).locator("option").allInnerTexts()).slice(1);
    for (const label of labels) {
      await page.getByLabel("faults", { exact: true }).selectOption({ label });
      await computed(page);
      each.push({ system, label, answer: await page.locator(".answer").innerText() });
    }
  }
  await page.close();
  return { slow, less, each };
}

async function dropped() {
  const { page } = await opened();
  const said = [];
  for (const path of files) {
    const name = path.split("/").at(-1);
    const before = await page.locator(".answer").innerText();
    await page.evaluate(([text, name]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name));
      dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, [readFileSync(path, "utf8"), name]);
    // Points beside the curves change no sentence.
    await page.waitForFunction((before) => document.querySelector(".answer").textContent !== before, before, { timeout: 3000 }).catch(() => undefined);
    await settled(page);
    const marks = await page.locator(".first .paper .mark.open").count();
    said.push({ name, chips: await page.locator(".chip .name").allInnerTexts(), marks, ...(await shown(page)) });
  }
  await page.close();
  return said;
}

/** Megabytes of the page, and of all that its process holds, workers too, after so many drags. */
async function remembered() {
  const { page } = await opened("#load=depth&at=16&requests=1000");
  await settled(page);
  const client = await browser.newBrowserCDPSession();
  const { processInfo } = await client.send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  const resident = () => Math.max(...renderers.map(({ id }) => Number(/RssAnon:\s*(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))[1]))) / 1e3;
  const memory = async () => {
    await Promise.all([page, ...page.workers()].map((one) => one.evaluate(() => gc())));
    const [heap, elements] = await page.evaluate(() => [performance.memory.usedJSHeapSize / 1e6, document.querySelectorAll("*").length]);
    return { heap, elements, all: resident() };
  };
  // As fast as the page takes them: a frame each. Places differ from turn to turn, so that nothing is remembered.
  const drags = async (from, to) => {
    await page.evaluate(async ([from, to]) => {
      for (let n = from; n < to; n++) {
        const label = ["spindle speed", "seek times"][Math.floor(n / 80) % 2];
        const input = document.getElementById([...document.querySelectorAll("label")].find((one) => one.textContent === label).htmlFor);
        input.value = String((n % 80) - 40);
        input.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    }, [from, to]);
    await settled(page);
  };
  const began = Date.now();
  await drags(0, 100);
  const before = await memory();
  await drags(100, 1000);
  const after = await memory();
  await page.close();
  return { before, after, seconds: (Date.now() - began) / 1000 };
}

async function narrow() {
  const { page } = await opened("", { viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  await settled(page);
  const told = await page.evaluate(() => {
    const root = document.documentElement;
    return { wide: root.scrollWidth, ground: getComputedStyle(root).backgroundColor };
  });
  told.violations = (await checkAccessibility(page)).violations;
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  const printed = await page.evaluate(() => ({
    panel: getComputedStyle(document.querySelector(".panel")).display,
    lines: document.querySelectorAll(".first .paper path.line").length,
  }));
  await page.close();
  return { ...told, printed };
}

/** Systems of the catalogue, from one on so many, and all workloads: what is said of each, and of it with its first slider moved. */
async function every() {
  const { page } = await opened();
  const of = (label) => page.getByLabel(label, { exact: true }).locator("option").evaluateAll((all) => all.map(({ value }) => value).filter(Boolean));
  const [systems, workloads] = [await of("Add a system"), await of("workload")];
  const [first, count] = files.map(Number);
  const pairs = systems.slice(first, first + count).map((name) => [name, "random-read-4k"]);
  if (first === 0) pairs.push(...workloads.map((name) => ["cheetah-x15-36lp", name]));
  const told = [];
  for (const [system, workload] of pairs) {
    const hash = `#load=rate&most=100&at=50&requests=100&of=${encodeURIComponent(`${system}|${workload}|${workload === "random-read-4k" ? "" : "warm_up=0"}`)}`;
    await page.evaluate((hash) => {
      location.hash = hash;
      dispatchEvent(new HashChangeEvent("hashchange", { newURL: location.href }));
    }, hash);
    await computed(page);
    const shows = { answer: await page.locator(".answer").innerText(), labels: await page.locator(".panel label").allInnerTexts() };
    const slider = page.locator(".panel fieldset:last-child input[type=range]").first();
    const moved = (await slider.count()) > 0;
    if (moved) {
      await slider.evaluate(changed, -1);
      await computed(page);
    }
    told.push({ system, workload, ...shows, moved: moved && (await page.locator(".answer").innerText()) });
  }
  await page.close();
  return { systems: systems.length, told };
}

found.told = await { dragged, addressed, pinned, faulty, dropped, remembered, narrow, every }[part]();
await browser.close();
console.log(JSON.stringify(found));
