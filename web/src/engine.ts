/** The simulator in the page: a worker per core, with questions in order of urgency. */

/** The code of a worker (worker.ts), put here when the page is built: a file may not load another. */
declare const WORKER: string;

/** The result of a run. */
export type Told =
  | { done: { row: Record<string, number | string | boolean | null>; components: [string, number][] } }
  | { impossible: string }
  | { failed: string };

export type Blueprint = { kind: string; text: string; drives: Record<string, string> };

/** A file: its blueprint, and its stated keys. */
export interface Stated {
  blueprint: Blueprint;
  stated: Record<string, unknown>;
}

export type Named = [id: string, name: string];
export type Catalogue = Record<"disks" | "ssds" | "arrays" | "volumes" | "workloads" | "scenarios", Named[]> & { version: string };

/** How soon an answer is needed. */
export type Urgency = 0 | 1 | 2;

interface Task {
  question: unknown;
  urgency: Urgency;
  isWanted: () => boolean;
  settle: (said: { answer: unknown } | { refused: string } | { failed: string } | null) => void;
}

const MEMORY_GB_A_WORKER = 1;

export class Engine {
  private readonly idle: Worker[] = [];
  private readonly tasks: Task[] = [];

  private constructor(
    readonly workers: number,
    first: Worker,
    module: WebAssembly.Module,
    address: string,
  ) {
    this.idle.push(first);
    for (let n = 1; n < workers; n++) {
      const worker = new Worker(address);
      worker.postMessage({ module });
      this.idle.unshift(worker);
    }
  }

  /** Starts the workers, the first of which unpacks the engine: the page is free meanwhile. */
  static async start(packed: string): Promise<Engine> {
    const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const first = new Worker(address);
    const module = await new Promise<WebAssembly.Module>((compiled, refused) => {
      first.onmessage = ({ data }: MessageEvent<{ module: WebAssembly.Module } | { failed: string }>) =>
        "module" in data ? compiled(data.module) : refused(new Error(data.failed));
      first.onerror = ({ message }) => refused(new Error(message));
      first.postMessage({ packed });
    });
    const memory = (navigator as { deviceMemory?: number }).deviceMemory ?? 4;
    return new Engine(Math.max(1, Math.min(navigator.hardwareConcurrency || 2, memory / MEMORY_GB_A_WORKER, 8)), first, module, address);
  }

  /**
   * The answer to a question, in the form of crates/web/src/questions.rs; `null` where it is no longer wanted.
   * Throws the reason for a refusal.
   */
  async ask<T>(question: unknown, urgency: Urgency = 0, isWanted: () => boolean = () => true): Promise<T | null> {
    const said = await new Promise<Parameters<Task["settle"]>[0]>((settle) => {
      this.tasks.push({ question, urgency, isWanted, settle });
      this.next();
    });
    if (said === null || !isWanted()) return null;
    if ("answer" in said) return said.answer as T;
    throw new Error("refused" in said ? said.refused : said.failed);
  }

  private next(): void {
    for (let n = this.tasks.length - 1; n >= 0; n--) {
      const task = this.tasks[n];
      if (task && !task.isWanted()) this.tasks.splice(n, 1), task.settle(null);
    }
    while (this.tasks.length) {
      const worker = this.idle.pop();
      if (!worker) return;
      const urgency = Math.min(...this.tasks.map((task) => task.urgency));
      const [task] = this.tasks.splice(this.tasks.findIndex((one) => one.urgency === urgency), 1);
      if (task) this.give(worker, task);
    }
  }

  private give(worker: Worker, task: Task): void {
    const back = (said: Parameters<Task["settle"]>[0]) => {
      this.idle.push(worker);
      task.settle(said);
      this.next();
    };
    worker.onmessage = ({ data }: MessageEvent<{ said: Parameters<Task["settle"]>[0] }>) => back(data.said);
    worker.onerror = (error) => back({ failed: error.message });
    worker.postMessage({ question: task.question });
  }
}
