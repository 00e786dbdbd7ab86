// Opens the explorer in Firefox as it is installed, drags, and prints what was there as JSON, by WebDriver BiDi:
// node --experimental-websocket firefox.mjs FIREFOX PAGE
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [program, file] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "firefox-"));
const firefox = spawn(program, ["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", profile], { stdio: ["ignore", "ignore", "pipe"] });
const found = { errors: [] };
try {
  let address;
  for await (const line of createInterface({ input: firefox.stderr })) {
    address = /listening on (ws:\S+)/.exec(line)?.[1];
    if (address) break;
  }
  const socket = new WebSocket(`${address}/session`);
  await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }));
  const asked = new Map();
  socket.onmessage = ({ data }) => {
    const { id, type, method, params, result, error, message } = JSON.parse(data);
    if (method === "log.entryAdded" && ["error", "warn"].includes(params.level)) found.errors.push(params.text);
    const { resolve, reject } = asked.get(id) ?? {};
    asked.delete(id);
    if (type === "success") resolve?.(result);
    if (type === "error") reject?.(new Error(`${error}: ${message}`));
  };
  let id = 0;
  const ask = (method, params) => new Promise((resolve, reject) => {
    asked.set(++id, { resolve, reject });
    socket.send(JSON.stringify({ id, method, params }));
  });
  await ask("session.new", { capabilities: {} });
  await ask("session.subscribe", { events: ["log.entryAdded"] });
  const { contexts } = await ask("browsingContext.getTree", {});
  const { context } = contexts[0];
  const value = async (code) => {
    const told = await ask("script.evaluate", { expression: `(async () => { ${code} })()`, target: { context }, awaitPromise: true });
    if (told.type !== "success") throw new Error(told.exceptionDetails.text);
    return told.result.value;
  };
  const computed = `while (document.querySelector("main").getAttribute("aria-busy") !== "false") await new Promise((go) => setTimeout(go, 50));`;
  const answer = `${computed} return document.querySelector(".answer").textContent;`;
  await ask("browsingContext.navigate", { context, url: pathToFileURL(file).href, wait: "complete" });
  found.version = await value("return navigator.userAgent;");
  found.before = await value(answer);
  found.lines = await value(`return document.querySelectorAll(".first .paper path.line").length;`);
  found.after = await value(`
    const label = [...document.querySelectorAll("label")].find((one) => one.textContent === "spindle speed");
    const slider = document.getElementById(label.htmlFor);
    slider.value = "-30";
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    ${answer}`);
  socket.close();
} finally {
  firefox.kill();
  await new Promise((resolve) => (firefox.exitCode ?? firefox.signalCode) === null ? firefox.once("exit", resolve) : resolve());
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
console.log(JSON.stringify(found));
