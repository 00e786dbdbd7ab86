// Opens the view into the machine in Chromium, plays it and steps through it, and prints what was there as JSON: machine.mjs CHROMIUM PAGE
import { addressOf, checkAccessibility, launch, newWatchedPage } from "./chromium.mjs";

const [program, file] = process.argv.slice(2);
const browser = await launch(program);
const address = addressOf(file);
const found = { errors: [], requests: [], scenes: {} };

async function opened(hash = "", options = {}) {
  const shown = { viewport: { width: 1300, height: 900 }, reducedMotion: "reduce", ...options };
  const page = await newWatchedPage(browser, shown, found, address);
  await page.goto(address + hash);
  await page.waitForFunction(() => document.querySelector(".scenes a"));
  return page;
}

async function scene(page, name) {
  await page.getByRole("link", { name, exact: true }).click();
  await page.waitForFunction(() => document.querySelector(".stage canvas[aria-label]"));
}

const moment = (page) => page.locator(".moment").innerText();
const scrub = (page, share) =>
  page.getByLabel("Moment").evaluate((input, value) => {
    input.value = String(value);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, 1000 * share);

const views = (page) =>
  page.locator(".stage .one").evaluateAll((all) =>
    all.map((one) => {
      const canvas = one.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const words = new Uint32Array(data.buffer);
      one.querySelector("details").open = true;
      one.querySelector("details").dispatchEvent(new Event("unfold"));
      const summary = one.querySelector(".note").textContent;
      return {
        colours: new Set(words.filter((_, n) => n % 7 === 0)).size,
        summary,
        mean_ms: Number(/([\d.]+) (?:ms|µs) on average/.exec(summary)?.[1]),
        label: canvas.getAttribute("aria-label"),
        doing: one.querySelector(".doing").textContent,
        log: [...one.querySelectorAll(".log li")].map((item) => item.textContent),
        rows: one.querySelectorAll("tbody tr").length,
      };
    }),
  );

async function scenes() {
  const page = await opened();
  const names = await page.locator(".scenes a").allInnerTexts();
  for (const name of names) {
    await scene(page, name);
    let first_request;
    if (name.includes("RAID 5")) {
      first_request = [];
      for (let n = 0; n < 40 && !first_request.some((text) => /write parity/.test(text)); n++) {
        await page.getByRole("button", { name: "to the next event" }).click();
        for (const text of await page.locator(".log li").allInnerTexts()) {
          const told = text.replace(/^[\d.]+ \S+\s+/, "");
          if (/: command \d+, .* for request 0\.$/.test(told) && !first_request.includes(told)) first_request.push(told);
        }
      }
    }
    await scrub(page, 0.4);
    found.scenes[name] = { views: await views(page), first_request };
    await page.getByRole("button", { name: "close", exact: true }).click();
  }
  await page.close();
}

async function stepped() {
  const page = await opened();
  await page.getByRole("button", { name: "see it work" }).click();
  await page.waitForSelector(".stage canvas[aria-label]");
  const played_by_itself = (await page.locator(".transport").getByRole("button", { name: "pause" }).count()) > 0;
  await page.locator(".stage").focus();
  await page.keyboard.press("Home");
  const at_start = await moment(page);
  await page.keyboard.press("End");
  const at_end = await moment(page);
  await scrub(page, 0.5);
  await page.locator(".stage").focus();
  const [forth, marked] = [[], []];
  for (let n = 0; n < 5; n++) {
    await page.keyboard.press("ArrowRight");
    const label = await page.locator(".stage canvas").getAttribute("aria-label");
    forth.push(await page.evaluate(() => new URLSearchParams(location.hash).get("inside")) + label.slice(0, 0));
    marked.push(await page.locator(".log .now").count());
  }
  await page.keyboard.press("ArrowLeft");
  const back = await page.evaluate(() => new URLSearchParams(location.hash).get("inside"));
  const table = page.locator(".stage details");
  await table.evaluate((details) => details.dispatchEvent(new Event("unfold")));
  const row = await table.locator("tbody tr").first().locator("td").allInnerTexts();
  await table.getByRole("button").first().click();
  const followed = { request: row[0], came_ms: Number(row[3]), inside: await page.evaluate(() => new URLSearchParams(location.hash).get("inside")) };
  const [hash, now] = [await page.evaluate(() => location.hash), await moment(page)];
  await page.close();
  const other = await opened(hash);
  await other.waitForSelector(".stage canvas[aria-label]");
  found.addressed = { moment: now, again: await moment(other) };
  await other.close();
  return { played_by_itself, at_start, at_end, forth, back, marked, followed };
}

async function played() {
  const page = await opened("", { reducedMotion: "no-preference" });
  await page.getByRole("link", { name: "why SPTF wins", exact: true }).click();
  await page.waitForSelector(".stage canvas[aria-label]");
  const button = page.locator(".transport").getByRole("button", { name: /^(play|pause)$/ });
  const played_by_itself = (await button.innerText()) === "pause";
  const during = [await moment(page)];
  const frame_ms = await page.evaluate(async () => {
    const drawn = [];
    const { clearRect } = CanvasRenderingContext2D.prototype;
    // What a frame costs is from its first clearing to the end of its callbacks.
    for (let n = 0; n < 40; n++) {
      await new Promise((done) => requestAnimationFrame(done));
      let began = 0;
      CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        began ||= performance.now();
        return clearRect.apply(this, box);
      };
      await new Promise((done) => requestAnimationFrame(() => queueMicrotask(() => (began && drawn.push(performance.now() - began), done()))));
      CanvasRenderingContext2D.prototype.clearRect = clearRect;
    }
    return drawn.sort((one, other) => one - other)[drawn.length >> 1];
  });
  await page.waitForTimeout(500);
  during.push(await moment(page));
  await page.locator(".stage").focus();
  await page.keyboard.press(" ");
  const paused = [await moment(page)];
  await page.waitForTimeout(400);
  paused.push(await moment(page));
  await page.close();
  return { played_by_itself, while: during, paused, frame_ms };
}

// A link is followed although the page writes its old address before it hears of the new one.
async function overtaken() {
  const page = await opened();
  await page.evaluate(() => {
    const before = location.hash;
    location.hash = new URL(document.querySelector(".scenes a").href).hash;
    history.replaceState(null, "", before);
  });
  await page.waitForFunction(() => document.querySelector(".stage canvas[aria-label]"));
  await page.waitForFunction(() => location.hash.includes("inside="));
  await page.close();
  return true;
}

async function narrow() {
  const page = await opened("", { viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  await scene(page, "why SPTF wins");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  await page.locator(".stage details").first().evaluate((details) => details.dispatchEvent(new Event("unfold")));
  const { violations } = await checkAccessibility(page);
  await page.close();
  return { wide, violations };
}

await scenes();
for (const [name, look] of Object.entries({ stepped, played, overtaken, narrow })) found[name] = await look();
await browser.close();
console.log(JSON.stringify(found));
