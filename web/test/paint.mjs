// Says how soon a report is on the screen: paint.mjs CHROMIUM FILE; the median of five, each in a new window
import { statSync } from "node:fs";
import { addressOf, launch, newPage } from "./chromium.mjs";

const [program, file] = process.argv.slice(2);
const browser = await launch(program);
const times = [];
for (let turn = 0; turn < 5; turn++) {
  const page = await newPage(browser, { viewport: { width: 1280, height: 900 } });
  await page.goto(addressOf(file));
  const entry = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  times.push(await (await page.waitForFunction(entry)).jsonValue());
  await page.close();
}
await browser.close();
times.sort((one, other) => one - other);
const size = (statSync(file).size / 1e6).toFixed(2);
console.log(`${file}: ${size} MB, first contentful paint after ${Math.round(times[2])} ms (${times.map(Math.round).join(", ")})`);
