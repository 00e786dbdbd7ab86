// Asks the engine of pages in Node, a question a line, and prints its answers: engine.mjs ENGINE.wasm < questions
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const module = await WebAssembly.compile(readFileSync(process.argv[2]));
const engine = (await WebAssembly.instantiate(module, {})).exports;
for await (const line of createInterface({ input: process.stdin })) {
  const bytes = new TextEncoder().encode(line);
  const at = engine.room(bytes.length);
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  engine.answer();
  // As it was written: JavaScript reads no number of it.
  const said = new Uint8Array(engine.memory.buffer, engine.place(), engine.length());
  process.stdout.write(new TextDecoder().decode(said) + "\n");
}
