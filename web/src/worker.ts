/** A worker of the explorer: one instance of the engine, which answers questions one after another. */

import { unpackedOf } from "./lzma";

interface Exports {
  memory: WebAssembly.Memory;
  room(bytes: number): number;
  answer(): void;
  place(): number;
  length(): number;
}

type Told = { packed: string } | { module: WebAssembly.Module } | { question: unknown };

let compiled: WebAssembly.Module;
let engine: Exports;

async function made(): Promise<Exports> {
  return (await WebAssembly.instantiate(compiled, {})).exports as unknown as Exports;
}

/** The engine of its packed form: WebAssembly, packed by LZMA to seven tenths of what deflate makes of it, in base64. */
async function unpacked(packed: string): Promise<WebAssembly.Module> {
  const bytes = await (await fetch(`data:application/octet-stream;base64,${packed}`)).arrayBuffer();
  return WebAssembly.compile(unpackedOf(new Uint8Array(bytes)));
}

async function answered(question: unknown): Promise<unknown> {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  // Making room may move the memory: it is looked at afterwards.
  const at = engine.room(bytes.length);
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  try {
    engine.answer();
    return read();
  } catch {
    // An instance that trapped has left its message and cannot be used again.
    const words = read();
    engine = await made();
    return words;
  }
}

function read(): unknown {
  const bytes = new Uint8Array(engine.memory.buffer, engine.place(), engine.length());
  return JSON.parse(new TextDecoder().decode(bytes));
}

let last: Promise<unknown> = Promise.resolve();

addEventListener("message", ({ data }: MessageEvent<Told>) => {
  last = last.then(async () => {
    if ("question" in data) return postMessage({ said: await answered(data.question) });
    try {
      compiled = "module" in data ? data.module : await unpacked(data.packed);
      engine = await made();
      if ("packed" in data) postMessage({ module: compiled });
    } catch (error) {
      postMessage({ failed: (error as Error).message });
    }
  });
});
