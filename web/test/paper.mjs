// Lays a report out as for paper and prints how wide its tables are there, as JSON: paper.mjs CHROMIUM REPORT
import { addressOf, launch, newPage } from "./chromium.mjs";

const [program, file] = process.argv.slice(2);
const browser = await launch(program);
const MM = 96 / 25.4;
const found = {};
// A4 and A4 on its side, less the margins.
for (const [name, width] of [["upright", 186], ["aside", 273]]) {
  const page = await newPage(browser, { viewport: { width: Math.floor(width * MM), height: 900 } });
  await page.goto(addressOf(file));
  await page.waitForSelector("footer");
  await page.emulateMedia({ media: "print" });
  const tables = () =>
    [...document.querySelectorAll("figure.table, figure.grid")].map((figure) => {
      const table = figure.querySelector("table");
      return { id: figure.id, page: getComputedStyle(figure).page, width: table.getBoundingClientRect().width / innerWidth,
        letter: parseFloat(getComputedStyle(table).fontSize) };
    });
  found[name] = await page.evaluate(tables);
  await page.close();
}
console.log(JSON.stringify(found));
await browser.close();
