// Milliseconds of processor time that the engine takes for a question, each time it is asked: cost.mjs ENGINE.wasm TIMES QUESTION
import { readFileSync } from "node:fs";

const [file, times, question] = process.argv.slice(2);
const engine = (await WebAssembly.instantiate(readFileSync(file), {})).instance.exports;
const bytes = new TextEncoder().encode(question);
const found = [];
for (let n = 0; n < Number(times); n++) {
  const at = engine.room(bytes.length);
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  const before = process.cpuUsage();
  engine.answer();
  const { user, system } = process.cpuUsage(before);
  found.push((user + system) / 1000);
}
console.log(JSON.stringify(found));
