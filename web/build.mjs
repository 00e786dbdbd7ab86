// Builds the page that Python embeds, or with --test the unit tests, as plain JavaScript.
import { build } from "esbuild";
import { readdirSync } from "node:fs";

const folder = import.meta.dirname;
const common = { bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning", charset: "utf8" };
const page = `${folder}/../python/headstack/report`;

if (process.argv.includes("--test")) {
  const tests = readdirSync(`${folder}/test`).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    minify: false,
    entryPoints: tests.map((name) => `${folder}/test/${name}`),
    outdir: `${folder}/build`,
    platform: "node",
    format: "esm",
    outExtension: { ".js": ".mjs" },
  });
} else {
  await build({ ...common, entryPoints: [`${folder}/src/page.ts`], outfile: `${page}/bundle.js`, format: "iife" });
  await build({ ...common, entryPoints: [`${folder}/src/page.css`], outfile: `${page}/bundle.css` });
  // A worker of the explorer is made of text: a page that is a file may not load another.
  const worker = await build({ ...common, entryPoints: [`${folder}/src/worker.ts`], write: false, format: "iife" });
  const define = { WORKER: JSON.stringify(worker.outputFiles[0].text) };
  await build({ ...common, define, entryPoints: [`${folder}/src/explorer.ts`], outfile: `${page}/explore.js`, format: "iife" });
  await build({ ...common, define, entryPoints: [`${folder}/src/alive.ts`], outfile: `${page}/alive.js`, format: "iife" });
  await build({ ...common, entryPoints: [`${folder}/src/explore.css`], outfile: `${page}/explore.css` });
  await build({ ...common, entryPoints: [`${folder}/src/alive.css`], outfile: `${page}/alive.css` });
}
