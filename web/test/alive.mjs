// Opens reports with the simulator in Chromium, takes their first curve up and drags it, and prints what was there as JSON:
// alive.mjs CHROMIUM PAGE...
import { addressOf, checkAccessibility, launch, newWatchedPage } from "./chromium.mjs";

const [program, ...files] = process.argv.slice(2);
const browser = await launch(program);
const found = { errors: [], requests: [], pages: [] };

async function looked(file, number) {
  const address = addressOf(file);
  const dark = number % 2 === 1;
  const options = { viewport: { width: dark ? 390 : 1400, height: 900 }, colorScheme: dark ? "dark" : "light" };
  const page = await newWatchedPage(browser, options, found, address);
  await page.addInitScript(() => {
    // What the simulator answers, to the last digit.
    window.rows = [];
    window.Worker = class extends Worker {
      constructor(...given) {
        super(...given);
        this.addEventListener("message", ({ data }) => {
          for (const one of [data.said?.answer].flat()) if (one?.done) window.rows.push(one.done.row);
        });
      }
    };
  });
  await page.goto(`${address}#runs`);
  const offered = await page.locator(".vary button").allInnerTexts();
  const refused = await page.locator("figure .note").allInnerTexts();
  const told = { offered, refused, violations: (await checkAccessibility(page)).violations };
  if (!offered.length) return { ...told, rows: [] };
  await page.locator(".vary button").first().click();
  const { sections } = JSON.parse(await page.evaluate(() => document.getElementById("report").textContent)).report;
  const [taken] = sections.flatMap(({ figures }) => figures.flatMap((figure) => figure.taken ?? []));
  const requests = Number(taken.values.requests);
  const whole = (loads) => page.waitForFunction(([requests, loads]) => {
    const known = new Set(window.rows.filter((row) => row.requests === requests).map((row) => row.depth ?? row.rate_per_s));
    return loads.every((load) => known.has(load));
  }, [requests, loads]);
  await whole(taken.loads);
  await page.waitForTimeout(400);
  told.rows = await page.evaluate((requests) => window.rows.splice(0).filter((row) => row.requests === requests), requests);
  told.chips = await page.locator(".chip .name").allInnerTexts();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  told.open = { hash: decodeURIComponent(new URL(page.url()).hash), wide, violations: (await checkAccessibility(page)).violations };
  const label = (await page.getByLabel("seek times", { exact: true }).count()) ? "seek times" : "drives";
  const slider = page.getByLabel(label, { exact: true });
  await slider.evaluate((input) => {
    input.value = String(Number(input.value) + 20);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await whole(taken.loads);
  told.dragged = await page.evaluate((requests) => window.rows.filter((row) => row.requests === requests), requests);
  await page.getByRole("button", { name: "back to the report" }).click();
  await page.waitForTimeout(400);
  told.closed = { hash: new URL(page.url()).hash, open: await page.locator("dialog").count() };
  await page.close();
  return told;
}

for (const [number, file] of files.entries()) found.pages.push(await looked(file, number));
await browser.close();
console.log(JSON.stringify(found));
