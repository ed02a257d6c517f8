import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import pg from 'pg';
import { sourceContract } from '../../src/source/contract.ts';
import { SourceBusy, type SourceConnections } from '../../src/source/source_connection.ts';
import { InvalidRelationName, quoteRelation } from '../../src/source/relations.ts';
import { compileRowQuery } from '../../src/source/row_query/compile_row_query.ts';
import { dayLength, formatTimestamp, writeDate } from '../../src/source/write_timestamp.ts';
import { int64 } from '../encoding/copy_block.ts';
import { randomCases } from '../setup/effort.ts';
import {
  type CopyDataSink,
  openReusingSocket,
  tapCopyData,
  transientBytes,
} from '../../src/source/copy_data.ts';
import { shareByProject, type SharedConnections } from '../../src/source/project_shares.ts';

describe('tapCopyData', () => {
  /** A protocol message: type, length and payload. */
  function message(type: string, payload: Uint8Array): Buffer {
    const head = Buffer.alloc(5);
    head.write(type, 0, 'latin1');
    head.writeInt32BE(payload.length + 4, 1);
    return Buffer.concat([head, payload]);
  }

  /** Creates a sink that keeps complete payloads. */
  function createSink() {
    const taken: Buffer[] = [];
    let open: Buffer[] = [];
    let expected = 0;
    const sink: CopyDataSink = {
      start: (size) => {
        open = [];
        expected = size;
      },
      write: (bytes, start, end) => open.push(Buffer.from(bytes.subarray(start, end))),
      end: () => {
        const payload = Buffer.concat(open);
        expect(payload).toHaveLength(expected);
        taken.push(payload);
      },
    };
    return { sink, taken };
  }

  /** Creates a stream with a parser that keeps its input. */
  function createStream() {
    const stream = new PassThrough();
    const parsed: Buffer[] = [];
    stream.on('data', (bytes: Buffer) => parsed.push(bytes));
    stream.on('error', () => undefined);
    return { stream, parsed };
  }

  const payload = fc.uint8Array({ minLength: 1, maxLength: 40 });
  const anyMessage = fc.record({
    type: fc.constantFrom('d', 'd', 'd', 'd', 'N', 'S', 'C', 'c', 'Z', 'E'),
    payload,
  });

  it('separates CopyData from other messages, however they are split into reads', () => {
    fc.assert(
      fc.property(
        fc.array(anyMessage),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
        fc.constantFrom('data', transientBytes),
        (messages, sizes, event) => {
          const { stream, parsed } = createStream();
          const { sink, taken } = createSink();
          const restore = tapCopyData(stream, sink);
          const bytes = Buffer.concat(messages.map(({ type, payload }) => message(type, payload)));
          // Like a socket that reuses its read buffer.
          const memory = Buffer.alloc(12);
          for (let at = 0, read = 0; at < bytes.length; read += 1) {
            const size = Math.min(sizes[read % sizes.length] ?? 1, bytes.length - at);
            bytes.copy(memory, 0, at, at + size);
            stream.emit(event, memory.subarray(0, size));
            at += size;
          }
          const isCopyData = ({ type }: { type: string }) => type === 'd';
          expect(taken).toEqual(messages.filter(isCopyData).map(({ payload }) => Buffer.from(payload)));
          const others = messages.filter((one) => !isCopyData(one));
          expect(Buffer.concat(parsed)).toEqual(
            Buffer.concat(others.map(({ type, payload }) => message(type, payload))),
          );
          restore();
          stream.emit('data', Buffer.from('after'));
          expect(parsed.at(-1)?.toString()).toBe('after');
        },
      ),
    );
  });

  it('forwards everything after the end of the statement, even in the same read', () => {
    const stream = new PassThrough();
    const parsed: Buffer[] = [];
    const ready = message('Z', Buffer.from('I'));
    const { sink, taken } = createSink();
    let restore = (): void => undefined;
    stream.on('data', (bytes: Buffer) => {
      parsed.push(bytes);
      if (Buffer.concat(parsed).equals(ready)) restore();
    });
    restore = tapCopyData(stream, sink);
    const next = message('d', Buffer.from('not of this COPY'));
    stream.emit('data', Buffer.concat([ready, next]));
    expect(Buffer.concat(parsed)).toEqual(Buffer.concat([ready, next]));
    expect(taken).toEqual([]);
  });

  it.each([
    ['an unknown type', Buffer.from([0x21, 0, 0, 0, 9])],
    ['a length that cannot be', Buffer.from([0x64, 0, 0, 0, 1])],
  ])('destroys the connection at %s', (_, bytes) => {
    const { stream } = createStream();
    tapCopyData(stream, createSink().sink);
    stream.emit('data', bytes);
    expect(stream.errored).toMatchObject({ name: 'ProtocolError' });
  });
});

describe('the contract of the source', () => {
  const readme = readFileSync(join(import.meta.dirname, '../../src/source/README.md'), 'utf8');
  const columns = Object.entries(sourceContract).flatMap(([role, contract]) =>
    contract.columns.map((column) => [role, column.name, column] as const),
  );

  it.each(columns)('%s.%s is described in the README', (_, name, { type, nullable, optional, why }) => {
    const presence = optional === true ? ', may be missing' : nullable ? '' : ', not null';
    expect(readme).toContain(`\n- \`${name}\` \`${type}\`${presence}: ${why}\n`);
  });

  it('names each index', () => {
    for (const { accessPaths } of Object.values(sourceContract))
      for (const path of accessPaths) expect(readme).toContain(`\`(${path.columns.join(', ')})\``);
  });
});

describe('connections shared by project', () => {
  /** A read that its test ends. */
  interface OpenRead {
    readonly name: string;
    readonly end: () => void;
  }

  /** Shared connections whose reads stay open, with a wait that never times out by default. */
  function openReads(
    size: number,
    waitMs = 3_600_000,
  ): {
    readonly open: OpenRead[];
    readonly read: (teamId: number, name: string, signal?: AbortSignal) => Promise<string>;
  } {
    const open: OpenRead[] = [];
    const connections: SourceConnections = {
      statementTimeoutMs: 1_000,
      pool: new pg.Pool(),
      read: (...[, , work]) => work({} as Parameters<typeof work>[0]),
      close: () => Promise.resolve(),
    };
    const shared: SharedConnections = shareByProject(connections, size, waitMs);
    return {
      open,
      read: (teamId, name, signal) =>
        shared.forProject(teamId).read({}, signal, async () => {
          const { promise, resolve } = Promise.withResolvers<undefined>();
          open.push({ name, end: () => resolve(undefined) });
          await promise;
          return name;
        }),
    };
  }

  /** Lets all reads start that need not wait. */
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const namesOf = (reads: readonly OpenRead[]) => reads.map(({ name }) => name);

  it.each([
    { size: 12, share: 4 },
    { size: 4, share: 1 },
    { size: 3, share: 1 },
    { size: 1, share: 1 },
  ])('allow a project $share of $size', async ({ size, share }) => {
    const { open, read } = openReads(size);
    const reads = Array.from({ length: size + 1 }, (_, n) => read(1, `first ${n}`));
    await settle();
    expect(open).toHaveLength(share);
    const other = read(2, 'second');
    await settle();
    expect(namesOf(open)).toContain('second');
    while (open.length > 0) {
      open.shift()?.end();
      await settle();
    }
    await Promise.all([...reads, other]);
  });

  it('pass to the reads of a project in order of arrival', async () => {
    const { open, read } = openReads(3);
    const reads = ['a', 'b', 'c'].map((name) => read(1, name));
    const started: string[] = [];
    for (const [n] of reads.entries()) {
      await settle();
      expect(open).toHaveLength(n + 1);
      started.push(open[n]?.name ?? '');
      open[n]?.end();
    }
    expect(started).toEqual(['a', 'b', 'c']);
    expect(await Promise.all(reads)).toEqual(['a', 'b', 'c']);
  });

  it('reject a read that waits too long, and serve the next one', async () => {
    const { open, read } = openReads(3, 10);
    const first = read(1, 'first');
    await expect(read(1, 'late')).rejects.toThrow(SourceBusy);
    open[0]?.end();
    await first;
    const next = read(1, 'next');
    await settle();
    expect(namesOf(open)).toEqual(['first', 'next']);
    open[1]?.end();
    expect(await next).toBe('next');
  });

  it('end the wait of a read that is aborted with the reason of its signal', async () => {
    const { open, read } = openReads(3);
    const first = read(1, 'first');
    const abort = new AbortController();
    const waiting = read(1, 'waiting', abort.signal);
    const reason = new Error('no longer needed');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    open[0]?.end();
    await first;
    expect(namesOf(open)).toEqual(['first']);
  });
});

describe('quoteRelation', () => {
  it.each([
    ['events', '"events"'],
    ['public.Events', '"public"."events"'],
    ['"My ""own"" schema"."Ev.ents"', '"My ""own"" schema"."Ev.ents"'],
  ])('makes %s %s', (name, quoted) => {
    expect(quoteRelation(name)).toBe(quoted);
  });

  it.each(['', '.', 'a.b.c', 'events; drop table events', 'events e', '"open', 'e"vents', '1events', '""'])(
    'rejects %j',
    (name) => {
      expect(() => quoteRelation(name)).toThrow(InvalidRelationName);
    },
  );
});

describe('a socket that reuses its buffers', () => {
  it('reads results in turns, and completely', async () => {
    const sent = Buffer.alloc(8 * 2 ** 20, 'x');
    const server = createServer((connection) => connection.end(sent)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = openReusingSocket();
    let received = 0;
    const turns: number[] = [];
    let turn = 0;
    const countTurn = () => {
      turns.push(turn);
      turn = 0;
    };
    socket.on('data', (bytes: Buffer) => {
      if (turn === 0) setImmediate(countTurn);
      turn += bytes.length;
      received += bytes.length;
    });
    socket.connect((server.address() as AddressInfo).port, '127.0.0.1');
    await once(socket, 'end');
    socket.destroy();
    server.close();
    expect(received).toBe(sent.length);
    expect(Math.max(...turns)).toBeLessThanOrEqual(320 * 1024);
  });
});

describe('a column of a row query', () => {
  const relation = (columns: Readonly<Record<string, string>>) => ({
    relation: '"public"."rows"',
    columns: new Map(Object.entries(columns)),
  });

  const fieldOf = (expression: string) => {
    const access = { sql: (column: string) => `row_."${column}"`, jsonType: () => 'jsonb' };
    const { fields } = compileRowQuery(
      'events',
      { dialect_query: `SELECT ${expression} AS f FROM events`, timezone: 'UTC', week_start_day: 'sunday' },
      1,
      {
        selected: access,
        filtered: access,
        events: relation({}),
        persons: relation({ properties: 'jsonb' }),
      },
    );
    return fields[0];
  };

  it.each([
    ['person.properties.plan', true],
    ['upper(person.properties.plan)', true],
    ['person_properties', true],
    ['toString(person.created_at)', true],
    ['person.id', false],
    ['properties.plan', false],
    // Literals that read like the SQL of these columns.
    [`'row_."person_properties"'`, false],
    [`'"person_of_row$1".'`, false],
  ])('%s reads the current person: %s', (expression, readsPerson) => {
    expect(fieldOf(expression)?.readsPerson).toBe(readsPerson);
  });

  it.each([
    ['properties', 'properties'],
    ['event', 'event'],
    ['properties.plan', null],
    ['upper(event)', null],
    ["toTimeZone(timestamp, 'Asia/Tokyo')", null],
  ])('%s is an unchanged column of the model: %s', (expression, column) => {
    expect(fieldOf(expression)?.column).toBe(column);
  });
});

describe('formatTimestamp', () => {
  const epoch = BigInt(Date.UTC(2000, 0, 1));
  const fromMilliseconds = (milliseconds: number, microseconds = 0): Buffer =>
    int64((BigInt(milliseconds) - epoch) * 1000n + BigInt(microseconds));

  it('agrees with the calendar of Date, to the microsecond, from year 1 to 9999', () => {
    const first = new Date('0001-01-01T00:00:00Z').getTime();
    const last = new Date('9999-12-31T23:59:59.999Z').getTime();
    fc.assert(
      fc.property(
        fc.integer({ min: first, max: last }),
        fc.nat({ max: 999 }),
        (milliseconds, microseconds) => {
          const date = new Date(milliseconds).toISOString().slice(0, -1);
          expect(formatTimestamp(fromMilliseconds(milliseconds, microseconds), 0)).toBe(
            `${date}${String(microseconds).padStart(3, '0')}Z`,
          );
        },
      ),
      { numRuns: randomCases(2_000) },
    );
  });

  it('formats the first and last microsecond with a four-digit year', () => {
    const first = fromMilliseconds(new Date('0001-01-01T00:00:00Z').getTime());
    const last = fromMilliseconds(new Date('9999-12-31T23:59:59.999Z').getTime(), 999);
    expect(formatTimestamp(first, 0)).toBe('0001-01-01T00:00:00.000000Z');
    expect(formatTimestamp(last, 0)).toBe('9999-12-31T23:59:59.999999Z');
    expect(formatTimestamp(int64(first.readBigInt64BE() - 1n), 0)).toBeUndefined();
    expect(formatTimestamp(int64(last.readBigInt64BE() + 1n), 0)).toBeUndefined();
  });

  it('does not depend on what was formatted before: equal and adjacent times, and dates', () => {
    const day = Buffer.alloc(dayLength);
    const time = (seconds: number, microseconds: number) =>
      formatTimestamp(fromMilliseconds(Date.UTC(2026, 10, 1, 10, 0, seconds), microseconds), 0);
    expect(time(5, 1)).toBe('2026-11-01T10:00:05.000001Z');
    expect(time(5, 1)).toBe('2026-11-01T10:00:05.000001Z');
    expect(time(5, 20)).toBe('2026-11-01T10:00:05.000020Z');
    expect(time(6, 20)).toBe('2026-11-01T10:00:06.000020Z');
    writeDate(day, 0, 0);
    expect(day.toString()).toBe('2000-01-01');
    expect(time(6, 20)).toBe('2026-11-01T10:00:06.000020Z');
    expect(formatTimestamp(int64(2n ** 63n - 1n), 0)).toBeUndefined();
    expect(time(6, 20)).toBe('2026-11-01T10:00:06.000020Z');
  });

  it('rejects infinities', () => {
    expect(formatTimestamp(int64(2n ** 63n - 1n), 0)).toBeUndefined();
    expect(formatTimestamp(int64(-(2n ** 63n)), 0)).toBeUndefined();
  });
});
