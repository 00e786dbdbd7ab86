// Opens a report in Chromium, does what a reader does, and prints what was there as JSON: page.mjs CHROMIUM REPORT NOTEBOOK
import { addressOf, checkAccessibility, launch, newWatchedPage } from "./chromium.mjs";

const [program, file, notebook] = process.argv.slice(2);
const browser = await launch(program);
const addresses = [file, notebook].map(addressOf);
const found = { errors: [], requests: [] };

async function opened(options, address = addresses[0], waited = "footer") {
  const page = await newWatchedPage(browser, { viewport: { width: 1200, height: 900 }, ...options }, found, address);
  await page.goto(address);
  await page.waitForSelector(waited);
  return page;
}

/** The cells of a table as numbers where they are such, else as text. */
const cells = (table) =>
  [...table.querySelectorAll("tbody tr:not(.told)")].map((row) =>
    [...row.children].map((cell) => {
      const data = cell.querySelector("data");
      return data ? Number(data.value) : cell.firstChild?.textContent ?? "";
    }),
  );

async function shown(page, name) {
  await page.locator(`#${name}`).scrollIntoViewIfNeeded();
  await page.waitForSelector(`#${name} svg.chart`);
}

const tip = (page, name) => page.locator(`#${name} .tip`).innerText();
const ticks = (page, name) => page.locator(`#${name} .axis`).first().locator("text:not(.label)").allTextContents();
const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

async function values(page) {
  const figures = {};
  for (const name of await page.locator("figure").evaluateAll((all) => all.map((figure) => figure.id))) {
    const figure = page.locator(`#${name}`);
    const data = figure.locator("details.data");
    if (await data.count()) {
      await shown(page, name);
      await data.locator("summary").click();
      // The table is made when the browser tells of the opening, which is after the click.
      await data.locator("thead th").first().waitFor();
    }
    while (await figure.locator("button.more").count()) await figure.locator("button.more").click();
    const heads = await figure.locator("thead th").allInnerTexts();
    const label = await figure.locator("svg.chart > title").allTextContents();
    figures[name] = { heads: heads.map((head) => head.trim()), rows: await figure.locator("table").evaluate(cells), label };
    if (await data.count()) await data.locator("summary").click();
  }
  return figures;
}

/** Where the points of a line lie, in the order in which it is drawn. */
async function drawn(page, name) {
  const paths = await page.locator(`#${name} .paper path.line`).evaluateAll((all) => all.map((path) => path.getAttribute("d")));
  return paths.map((path) => [...path.matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)].map((part) => [Number(part[1]), Number(part[2])]));
}

/** Points alone, with their limit; and what is said of the first. */
async function scattered(page, name) {
  await shown(page, name);
  const found = await page.locator(`#${name}`).evaluate((figure) => {
    const marks = [...figure.querySelectorAll(".paper .mark")];
    const kind = (mark) => (mark.classList.contains("star") ? "cross" : mark.classList.contains("open") ? "open" : "full");
    const limit = figure.querySelector(".limit").getBoundingClientRect();
    const middle = ({ top, bottom }) => (top + bottom) / 2;
    const sorted = marks.map((mark) => mark.getBoundingClientRect()).sort((one, other) => one.left - other.left);
    return {
      marks: marks.map(kind),
      lines: [...figure.querySelectorAll(".paper path.line")].filter((line) => line.getAttribute("d")).length,
      texts: [...figure.querySelectorAll(".paper .labels text")].map((text) => text.textContent),
      key: [...figure.querySelectorAll(".key")].map((key) => key.textContent),
      heights: sorted.map(middle),
      limit: middle(limit),
    };
  });
  await page.locator(`#${name} .paper`).focus();
  await page.keyboard.press("ArrowRight");
  const said = await tip(page, name);
  await page.keyboard.press("Escape");
  return { ...found, said };
}

/** Where bars begin and end, series by series. */
async function barred(page, name) {
  await shown(page, name);
  return page.locator(`#${name} .paper .bar`).evaluateAll((all) =>
    all.map((bar) => {
      const { left, top, bottom } = bar.getBoundingClientRect();
      return { left, top, bottom };
    }),
  );
}

async function pointed(page, name) {
  await shown(page, name);
  const paper = page.locator(`#${name} .paper`);
  const said = [];
  const [line] = await drawn(page, name);
  for (const [x, y] of line) {
    await paper.hover({ position: { x: x + 1, y: y + 1 } });
    said.push(await tip(page, name));
  }
  await page.mouse.move(1, 1);
  await paper.focus();
  const keyed = [];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"]) {
    await page.keyboard.press(key);
    keyed.push(await tip(page, name));
  }
  await page.keyboard.press("Escape");
  return { said, keyed, isLeft: await page.locator(`#${name} .tip`).isHidden() };
}

/** Zooms the first figure; the second is linked to it. */
async function zoomed(page, first, second) {
  const both = async () => [await ticks(page, first), await ticks(page, second)];
  await shown(page, second);
  await shown(page, first);
  const before = await both();
  const box = await page.locator(`#${first} .paper`).boundingBox();
  await page.mouse.move(box.x + 0.5 * box.width, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.7 * box.width, box.y + 101, { steps: 4 });
  await page.mouse.up();
  const during = await both();
  await page.locator(`#${first} .paper`).dblclick({ position: { x: 200, y: 60 } });
  return { before, during, after: await both() };
}

/** The colour of each series as its line or its bars are drawn. */
async function painted(page) {
  const lines = await page.locator("figure.lines, figure.bars").evaluateAll((all) =>
    all.map((figure) => [figure.id, [...figure.querySelectorAll(".legend button")].map((button) => [
      button.childNodes[1].textContent, getComputedStyle(button.querySelector(".sample > *")).color,
    ])]),
  );
  return Object.fromEntries(lines);
}

async function toggled(page, name) {
  const count = async () => (await drawn(page, name)).length;
  const button = page.locator(`#${name} .legend button`).first();
  const counts = [await count()];
  for (let press = 0; press < 2; press++) {
    await button.click();
    counts.push(await count());
  }
  return counts;
}

async function sortedBy(page, name, column) {
  const orders = [];
  for (let press = 0; press < 2; press++) {
    await page.locator(`#${name} thead button`).nth(column).click();
    orders.push((await page.locator(`#${name} table`).evaluate(cells)).map((row) => row[column]));
  }
  return orders;
}

async function claims(page) {
  const visible = () => page.locator(".claims > details:visible code").allInnerTexts();
  const buttons = await page.locator(".filter button").allInnerTexts();
  const filtered = {};
  for (const [number, name] of buttons.entries()) {
    await page.locator(".filter button").nth(number).click();
    filtered[name.trim()] = await visible();
  }
  await page.locator(".filter button").first().click();
  await page.locator(".claims > details > summary").first().click();
  const first = page.locator(".claims > details").first();
  await first.locator("table").waitFor();
  const backing = await first.locator(".backing > *").allInnerTexts();
  return { filtered, backing, evidence: await first.locator("p").allInnerTexts(), rows: await first.locator("table").evaluate(cells) };
}

async function described(page, run) {
  await page.locator("details.runs > summary").click();
  const button = page.locator("details.runs tbody button").nth(run);
  await button.click();
  const told = page.locator("details.runs pre").nth(run);
  await told.waitFor();
  return told.innerText();
}

async function themes() {
  const page = await opened({ colorScheme: "dark" });
  const grounds = { dark: await ground(page) };
  for (const step of ["light", "dark again"]) {
    await page.locator(".theme").click();
    grounds[step] = await ground(page);
  }
  await page.close();
  return grounds;
}

/** What juts out beyond a phone's screen, and where the first column is when a wide table has been scrolled. */
async function phone(screen) {
  const page = await opened({ viewport: { width: screen, height: 700 }, isMobile: true, hasTouch: true });
  const [line] = await drawn(page, await page.locator("figure.lines").first().getAttribute("id"));
  await page.locator(".paper").first().tap({ position: { x: line[2][0], y: line[2][1] } });
  const tapped = await page.locator(".tip").first().innerText();
  for (const summary of await page.locator("details > summary").all()) await summary.click();
  await page.waitForTimeout(200);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  const wide = await page.evaluate((screen) => {
    const inScroll = (element) => element.closest(".scroll, pre, svg") !== null;
    return [...document.body.querySelectorAll("*")]
      .filter((e) => !inScroll(e) && e.getBoundingClientRect().right > screen + 1)
      .map((e) => e.outerHTML.slice(0, 90));
  }, screen);
  const columns = await page.evaluate(() => {
    const scrolling = [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth + 60);
    return scrolling.map((one) => {
      const rows = [...one.querySelectorAll("thead tr, tbody tr:not(.told)")];
      const places = (n) => rows.map((row) => row.children[n].getBoundingClientRect().left - one.getBoundingClientRect().left);
      const before = places(1);
      one.scrollLeft = 60;
      return { name: one.closest("[id]").id, first: places(0), second: places(1).map((place, n) => before[n] - place), seen: one.clientWidth };
    });
  });
  await page.close();
  return { width, wide, tapped, columns };
}

/** How much of a wide window figures use, and how long a line of prose is. */
async function wideWindow() {
  const page = await opened({ viewport: { width: 1920, height: 1080 } });
  const result = await page.evaluate(() => ({
    figures: Math.max(...[...document.querySelectorAll("figure")].map((one) => one.getBoundingClientRect().right)),
    beside: new Set([...document.querySelectorAll("figure.lines, figure.bars")].map((one) => one.getBoundingClientRect().left)).size,
    prose: Math.max(...[...document.querySelectorAll("header p")].map((one) => one.getBoundingClientRect().width)),
  }));
  await page.close();
  return result;
}

async function printed() {
  const page = await opened({ colorScheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const result = await page.evaluate(() => ({
    charts: [...document.querySelectorAll(".plot")].map((plot) => plot.querySelectorAll("svg.chart").length),
    evidence: [...document.querySelectorAll(".claim")].map((claim) => claim.open && claim.childElementCount > 1),
    rest: document.querySelectorAll("figure.table > .scroll .more, .claim .more").length,
    ground: getComputedStyle(document.documentElement).backgroundColor,
  }));
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.emulateMedia({ media: "screen", colorScheme: "dark" });
  result.folded = await page.locator(".claim[open]").count();
  result.after = await ground(page);
  result.pdf = (await page.pdf({ format: "A4" })).subarray(0, 5).toString();
  await page.close();
  return result;
}

/** Frames of figures in a notebook whose page is dark, while the system prefers light. */
async function framed() {
  const page = await opened({ colorScheme: "light" }, addresses[1], "iframe");
  const result = [];
  for (const frame of page.frames().slice(1)) {
    await frame.waitForSelector("svg.chart");
    const lines = await frame.locator("svg.chart path.line").count();
    const ground = await frame.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const rest = await frame.evaluate(() => document.documentElement.scrollHeight - innerHeight);
    result.push({ lines, ground, rest });
  }
  await page.close();
  return result;
}

/** What is seen where scripts are off, and what of charts is there before anybody scrolls. */
async function still() {
  const page = await opened({ javaScriptEnabled: false }, addresses[0], "header");
  const result = {
    pictures: await page.locator("figure:not(.wide) svg.chart").evaluateAll((all) => all.map((one) => one.getBBox().width > 300)),
    text: await page.locator("body").innerText(),
    tables: await page.locator("figure table").count(),
  };
  await page.close();
  const live = await opened({ viewport: { width: 1200, height: 300 } });
  result.atOnce = await live.locator(".plot").evaluateAll((all) => all.map((plot) => plot.querySelectorAll("svg.chart").length));
  await live.close();
  return result;
}

/** Runs axe-core on the page with all sections unfolded. */
async function accessibility(colorScheme) {
  const page = await opened({ colorScheme });
  for (const summary of await page.locator("details > summary").all()) await summary.click();
  await page.waitForTimeout(200);
  const checked = await checkAccessibility(page);
  await page.close();
  return checked;
}

try {
  const page = await opened({});
  const names = await page.locator("figure.lines").evaluateAll((all) => all.map((figure) => figure.id));
  found.figures = await values(page);
  found.drawn = {};
  for (const name of names) found.drawn[name] = await drawn(page, name);
  found.painted = await painted(page);
  found.pointed = await pointed(page, names[0]);
  found.points = await scattered(page, "points");
  found.stacked = await barred(page, "stacked");
  found.zoomed = await zoomed(page, names[0], names[1]);
  found.toggled = await toggled(page, names[0]);
  found.sorted = await sortedBy(page, "systems", 1);
  found.claims = await claims(page);
  found.description = await described(page, 1);
  await page.close();
  found.themes = await themes();
  found.phones = { 360: await phone(360), 390: await phone(390) };
  found.wide = await wideWindow();
  found.printed = await printed();
  found.framed = await framed();
  found.still = await still();
  found.accessibility = { light: await accessibility("light"), dark: await accessibility("dark") };
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
