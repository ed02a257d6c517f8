/** Processes that read what others own: a fault of a parser costs one, and this process goes on. */
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import {
  createReaders,
  foreignBytesOf,
  foreignParser,
  type ForeignReader,
} from '../../src/foreign_bytes/foreign_bytes.ts';
import { parseStoredManifest } from '../../src/destination/stored_manifest.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { allItems } from '../setup/all_items.ts';

const program = join(import.meta.dirname, 'fault_foreign_bytes_process.ts');
const readers = (more: Record<string, string> = {}, of = program) =>
  createReaders(s3Settings({ EXPORTD_READER_MEMORY: '64MiB', ...more }), of);
/** Those of tests after which their processes are as before. */
const ordinary = readers();

const { signal } = new AbortController();
const echo = foreignParser<(input: string) => string>('echo');
const endless = foreignParser<(input: string) => string>('endless');
const greedy = foreignParser<(input: string) => string>('greedy');
/** Allocates in one call, of which V8 hears when it is too late for a thread. */
const greedyAtOnce = foreignParser<(input: string) => string>('greedy at once');
const refusing = foreignParser<(input: string) => string>('refusing');
const lengths: ForeignReader<null, number> = { name: 'lengths' };
const greedyReader: ForeignReader<null, number> = { name: 'greedy' };
const endlessReader: ForeignReader<null, number> = { name: 'endless' };

/** Of the fields of `/proc/self/stat` after the name of the program. */
const nicenessField = 16;

async function* chunksOf(...sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (const size of sizes) {
    await nextTurn();
    yield Buffer.alloc(size, 'x');
  }
}

/** Turns of the event loop while something runs: none while it is blocked. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  const running = { isOver: false };
  void work.finally(() => (running.isOver = true)).catch(() => undefined);
  while (!running.isOver) {
    await nextTurn();
    turns += 1;
  }
  return turns;
}

describe('an object', () => {
  it('is parsed, and a refusal keeps its type', async () => {
    const foreign = ordinary.of(1);
    expect(await foreign.parse(echo, 'text')).toBe('text');
    await expect(foreign.parse(refusing, 'no')).rejects.toMatchObject({
      name: 'ForeignBytesRefused',
      error: { name: 'Error', message: 'no', type: 'TableDamaged' },
    });
  });

  it('is parsed by a process without secrets, which Linux runs last and would end first', async () => {
    const foreign = ordinary.of(1);
    const environment = await foreign.parse(foreignParser<() => readonly string[]>('environment'), undefined);
    expect(environment.filter((name) => name !== 'TMPDIR' && !name.startsWith('NODE_'))).toEqual([]);
    if (process.platform !== 'linux') return;
    const readFile = foreignParser<(path: string) => string>('readFile');
    expect(await foreign.parse(readFile, '/proc/self/oom_score_adj')).toBe('1000');
    const [, afterName = ''] = (await foreign.parse(readFile, '/proc/self/stat')).split(') ');
    expect(afterName.split(' ')[nicenessField]).toBe('10');
  });

  it('that is parsed without an end ends its process, and the next one is parsed', async () => {
    const foreign = readers({ EXPORTD_READER_TIMEOUT: '200ms' }).of(1);
    const parsing = foreign.parse(endless, '');
    expect(await turnsDuring(parsing)).toBeGreaterThan(10);
    await expect(parsing).rejects.toMatchObject({ message: 'takes longer than 0.2 s to read' });
    expect(await foreign.parse(echo, 'next')).toBe('next');
  });

  it('may wait for a processor for longer than it may take to parse, but not for ever', async () => {
    if (process.platform !== 'linux') return;
    const waiting = foreignParser<(milliseconds: number) => number>('waiting');
    const of = (timeout: string) => readers({ EXPORTD_READER_TIMEOUT: timeout }).of(1);
    expect(await of('500ms').parse(waiting, 800)).toBe(800);
    await expect(of('100ms').parse(waiting, 60_000)).rejects.toMatchObject({
      message: 'takes longer than 0.1 s to read',
    });
  });

  it('is parsed by a process that takes longer to start than it may take to parse', async () => {
    const slow = join(import.meta.dirname, 'slow_foreign_bytes_process.ts');
    expect(await readers({ EXPORTD_READER_TIMEOUT: '1s' }, slow).of(1).parse(echo, 'text')).toBe('text');
  });

  it('fails if its process does not start', async () => {
    const none = join(import.meta.dirname, 'no_such_process.ts');
    await expect(readers({}, none).of(1).parse(echo, 'text')).rejects.toThrow('did not start (1)');
  });

  it.each([greedy, greedyAtOnce])(
    'whose parser is $name ends its process, and the next one is parsed',
    async (parser) => {
      const foreign = readers().of(1);
      await expect(foreign.parse(parser, '')).rejects.toMatchObject({
        message: 'needs more than 64 MiB of memory to read',
      });
      expect(await foreign.parse(echo, 'next')).toBe('next');
    },
  );

  it('is parsed by the same process as others in the ten seconds before, and by a new one later', async () => {
    const foreign = readers().of(1);
    const parsedBy = () => foreign.parse(foreignParser<() => number>('pid'), undefined);
    const seconds = (count: number) => jest.advanceTimersByTimeAsync(count * 1_000);
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
    try {
      const first = await parsedBy();
      await seconds(6);
      expect(await parsedBy()).toBe(first);
      await seconds(6);
      expect(await parsedBy()).toBe(first);
      await seconds(10);
      expect(await parsedBy()).not.toBe(first);
    } finally {
      jest.useRealTimers();
    }
  });

  it('of a project waits for no other, however many one sends', async () => {
    const pool = readers({ EXPORTD_READER_TIMEOUT: '200ms' });
    const order: string[] = [];
    const hostile = Array.from({ length: 3 }, () =>
      pool
        .of(1)
        .parse(endless, '')
        .catch(() => order.push('hostile')),
    );
    await pool.of(2).parse(echo, 'text');
    order.push('other');
    await Promise.all(hostile);
    expect(order[0]).toBe('other');
  });
});

it('that its process has no parser of is not read as one without contents', async () => {
  const foreign = ordinary.of(1);
  await expect(foreign.parse(foreignParser<(input: string) => string>('none'), 'text')).rejects.toThrow(
    'This process has no parser "none".',
  );
  await expect(allItems(foreign.read({ name: 'none' }, null, chunksOf(1), signal))).rejects.toThrow(
    'This process has no parser "none".',
  );
});

describe('a stream', () => {
  it('of chunks gives items, of several files at a time', async () => {
    const foreign = ordinary.of(1);
    const streams = [chunksOf(1, 2, 3), chunksOf(), chunksOf(70_000)];
    expect(
      await Promise.all(streams.map((chunks) => allItems(foreign.read(lengths, null, chunks, signal)))),
    ).toEqual([[1, 2, 3], [], [70_000]]);
  });

  it('ends with the error of its source', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from('x');
      await nextTurn();
      throw new Error('The source broke.');
    }
    await expect(allItems(ordinary.of(1).read(lengths, null, broken(), signal))).rejects.toThrow(
      'The source broke.',
    );
  });

  it('that its consumer leaves ends its source, and another one is read', async () => {
    const foreign = ordinary.of(1);
    let isEnded = false;
    async function* source(): AsyncGenerator<Buffer> {
      try {
        for (;;) {
          await nextTurn();
          yield Buffer.from('xy');
        }
      } finally {
        isEnded = true;
      }
    }
    for await (const length of foreign.read(lengths, null, source(), signal)) if (length === 2) break;
    expect(isEnded).toBe(true);
    expect(await allItems(foreign.read(lengths, null, chunksOf(5), signal))).toEqual([5]);
  });

  it.each([
    // Filling the memory takes seconds on a loaded machine.
    ['needs more memory than its process has', greedyReader, '60s', /64 MiB of memory/],
    ['takes too long', endlessReader, '200ms', /takes longer than 0.2 s/],
  ])('that %s ends its process, and the next one is read', async (_, reader, timeout, message) => {
    const foreign = readers({ EXPORTD_READER_TIMEOUT: timeout }).of(1);
    await expect(allItems(foreign.read(reader, null, chunksOf(1), signal))).rejects.toMatchObject({
      name: 'ForeignBytesTooCostly',
      message: expect.stringMatching(message),
    });
    expect(await allItems(foreign.read(lengths, null, chunksOf(5), signal))).toEqual([5]);
  });

  it('of a slow bucket keeps no other project from reading', async () => {
    const pool = readers({ EXPORTD_READER_TIMEOUT: '5s' });
    const released = Promise.withResolvers<undefined>();
    async function* slow(): AsyncGenerator<Buffer> {
      await released.promise;
      yield Buffer.from('x');
    }
    const waiting = Array.from({ length: 20 }, () =>
      allItems(pool.of(1).read(lengths, null, slow(), signal)),
    );
    expect(await allItems(pool.of(2).read(lengths, null, chunksOf(1), signal))).toEqual([1]);
    released.resolve(undefined);
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 20 }, () => [1]));
  });
});

describe('a manifest', () => {
  const foreign = foreignBytesOf(s3Settings(), 1);

  it.each([
    ['is short', '{}'],
    ['is long', `{"a":"${'x'.repeat(100_000)}"}`],
    ['is deeper than any', '['.repeat(900_000)],
  ])('that %s and none is none', async (_, text) => {
    expect(await parseStoredManifest(text, foreign)).toBeUndefined();
  });
});
