/** Parsers with faults. */
import { readFileSync } from 'node:fs';
import { serveForeignBytes } from '../../src/foreign_bytes/serve_foreign_bytes.ts';

function beEndless(): never {
  for (;;);
}

function beGreedy(): never {
  const taken: string[][] = [];
  for (;;) taken.push(Array.from({ length: 100_000 }, (_, index) => String(index)));
}

function beGreedyAtOnce(): never {
  const text = `[${'[],'.repeat(3_000_000)}[]]`;
  const taken: unknown[] = [];
  for (;;) taken.push(JSON.parse(text));
}

/** Needs no processor meanwhile, as a process that none is given. */
function wait(milliseconds: number): number {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
  return milliseconds;
}

serveForeignBytes(
  {
    echo: (input: string) => input,
    pid: () => process.pid,
    readFile: (path: string) => readFileSync(path, 'utf8').trim(),
    environment: () => Object.keys(process.env),
    endless: beEndless,
    waiting: wait,
    greedy: beGreedy,
    'greedy at once': beGreedyAtOnce,
    refusing: (message: string) => {
      throw Object.assign(new Error(message), { type: 'TableDamaged' });
    },
  },
  {
    lengths: async function* lengths(_: null, chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) yield [chunk.length];
    },
    greedy: async function* greedy(_: null, chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) yield [chunk.length, beGreedy()];
    },
    endless: async function* endless(_: null, chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) yield [chunk.length, beEndless()];
    },
  },
);
