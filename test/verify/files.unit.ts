import { setImmediate as nextTurn } from 'node:timers/promises';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { joinRowGroup } from '../../src/encoding/parquet/join_row_group.ts';
import { isRowGroup } from '../../src/encoding/parquet_encoder.ts';
import { type ExportedColumn, fileColumns } from '../../src/source/row_selection.ts';
import { decompress } from '../../src/readers/decompress.ts';
import { readJsonLines } from '../../src/readers/json_lines.ts';
import { mergedByKey } from '../../src/readers/merge_rows.ts';
import { extensionsOf, readRows } from '../../src/readers/read_rows.ts';
import type { ComparedRow } from '../../src/readers/row.ts';
import { digestText } from '../../src/readers/value_digest.ts';
import { copyBlock } from '../encoding/copy_block.ts';
import { bytesOf, sampleOf, type SampleRow } from '../encoding/parquet/samples.ts';
import { fileOf, fragmentOf } from '../encoding/parquet/written_file.ts';
import { allItems } from '../setup/all_items.ts';
import { randomCases } from '../setup/effort.ts';

/** Bytes in chunks of these sizes, repeatedly. */
async function* inChunks(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
    await nextTurn();
  }
}

describe('decompress', () => {
  /** Reads the output, slowly if `isSlow`. */
  async function decompressed(chunks: AsyncIterable<Buffer>, codec: string, isSlow = false): Promise<Buffer> {
    const output: Buffer[] = [];
    for await (const chunk of decompress(chunks, codec)) {
      output.push(chunk);
      if (isSlow) await nextTurn();
    }
    return Buffer.concat(output);
  }

  /** Text that compresses moderately. */
  const text = (length: number): Buffer =>
    Buffer.from(Array.from({ length }, (_, index) => String((index * 7_919) % 104_729)).join(','));

  it('joins zstd frames, wherever chunks end and however slowly they are consumed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 100, max: 70_000 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (lengths, sizes, isSlow) => {
          const parts = lengths.map(text);
          const frames = Buffer.concat(parts.map((part) => zstdCompressSync(part)));
          const whole = await decompressed(inChunks(frames, sizes), 'zst', isSlow);
          expect(whole.equals(Buffer.concat(parts))).toBe(true);
        },
      ),
      { numRuns: randomCases(50) },
    );
  });

  it.each([
    ['gz', gzipSync(text(50_000))],
    ['br', brotliCompressSync(text(5_000))],
    ['zst', zstdCompressSync(text(50_000))],
  ])('rejects truncated data, trailing data and other formats (%s)', async (codec, bytes) => {
    const read = (given: Buffer) => decompressed(inChunks(given, [1_000]), codec);
    const error = { name: 'FileUnreadable' };
    await expect(read(bytes.subarray(0, -3))).rejects.toMatchObject(error);
    await expect(read(Buffer.concat([bytes, Buffer.from('garbage')]))).rejects.toMatchObject(error);
    await expect(read(Buffer.from('something else'))).rejects.toMatchObject(error);
  });

  it('passes errors of chunks and uncompressed data through', async () => {
    const broken = async function* () {
      yield gzipSync('text').subarray(0, 5);
      await nextTurn();
      throw new RangeError('the connection');
    };
    await expect(decompressed(broken(), 'gz')).rejects.toThrow('the connection');
    expect((await decompressed(inChunks(Buffer.from('text'), [1]), '')).toString()).toBe('text');
  });
});

describe('JSON lines', () => {
  const shape = {
    id: 'uuid',
    columns: [
      { name: 'properties', type: 'json' },
      { name: 'event', type: 'text' },
      { name: 'version', type: 'bigint' },
    ],
  };

  async function read(text: string, chunkSize = 65_536): Promise<ComparedRow[]> {
    const bytes = Buffer.from(text);
    async function* chunks() {
      for (let at = 0; at < bytes.length; at += chunkSize)
        yield await Promise.resolve(bytes.subarray(at, at + chunkSize));
    }
    const rows: ComparedRow[] = [];
    for await (const row of readJsonLines(chunks(), shape)) rows.push(row);
    return rows;
  }

  const line = (properties: string, rest = '"event":"a","version":1'): string =>
    `{"uuid":"u","_inserted_at":"t","properties":${properties},${rest}}\n`;

  it('return the unchanged text of any JSON, wherever chunks end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.json(), { minLength: 1, maxLength: 4 }),
        fc.string(),
        fc.boolean(),
        fc.integer({ min: 1, max: 100 }),
        async (documents, event, isSpaced, chunkSize) => {
          const rest = `"event":${JSON.stringify(event)},"version":9007199254740993`;
          const lines = documents.map((document) => line(document, rest));
          const text = isSpaced ? lines.map((one) => one.replace('{', ' { ').replace(',', ' , ')) : lines;
          const rows = await read(text.join(''), chunkSize);
          expect(rows.map(({ values }) => values)).toEqual(
            documents.map((document) => [
              document === 'null' ? null : digestText(document.replaceAll(/[\n\r]/g, '')),
              digestText(Buffer.from(event).toString()),
              '9007199254740993',
            ]),
          );
        },
      ),
    );
  });

  it('keep what JSON.parse loses', async () => {
    const kept = '{"a":1.0,"a":-0,"c":"\\u0041","__proto__":1e400}';
    expect((await read(line(kept)))[0]?.values[0]).toBe(kept);
  });

  it('distinguish a missing field from null', async () => {
    const [row] = await read(line('null', '"event":null'));
    expect(row?.values).toEqual([null, null, undefined]);
  });

  it.each([
    ['a line without an end', line('{}').trimEnd()],
    ['a line that is no object', '[1]\n'],
    ['an empty line', '\n'],
    ['a string without an end', '{"uuid":"u\n'],
    ['brackets without an end', '{"properties":[{"a":1}\n'],
    ['something behind the object', '{"uuid":"u"} x\n'],
    ['a row without its key', '{"uuid":"u"}\n'],
    ['a key that is no text', '{"uuid":"u","_inserted_at":1}\n'],
  ])('reject %s', async (_, text) => {
    await expect(read(text)).rejects.toMatchObject({ name: 'FileUnreadable' });
  });
});

describe('a row group of the narrowest rows', () => {
  const columns: ExportedColumn[] = [
    { name: '_inserted_at', type: 'timestamp' },
    { name: 'uuid', type: 'uuid' },
  ];
  /** A block of this size ends after this many rows with two keys, in binary COPY format. */
  const rowsPerBlock = Math.ceil((8 * 1_024 * 1_024) / copyBlock([bytesOf(rowOf(0))]).length);

  function rowOf(row: number): SampleRow {
    return [
      sampleOf.timestamp(BigInt(row)),
      sampleOf.uuid(`00000000-0000-4000-8000-${String(row).padStart(12, '0')}`),
    ];
  }
  const fragment = (first: number, rows: number) =>
    fragmentOf(
      columns,
      null,
      Array.from({ length: rows }, (_, index) => rowOf(first + index)),
    );

  it('which ends one row short of its size and then takes a whole block, is read to its end', async () => {
    const short = 122_879;
    expect([short, short + 1].map((rows) => isRowGroup([{ rows }]))).toEqual([false, true]);
    // Small blocks with the same rows, which are made once.
    const piece = 4_096;
    const repeated = fragment(0, piece);
    const first = [
      ...Array.from({ length: Math.floor(short / piece) }, () => repeated),
      fragment(0, short % piece),
    ];
    const group = joinRowGroup([...first, fragment(short, rowsPerBlock)], fileColumns(columns), {
      compression: null,
    });
    const file = fileOf(columns, null, [group]);
    let rows = 0;
    for await (const row of readRows(
      { key: 'a.parquet', rows: short + rowsPerBlock, bytes: file.length },
      inChunks(file, [1_024 * 1_024]),
      { id: 'uuid', columns: [] },
    ))
      rows += row.id === '' ? 0 : 1;
    expect(rows).toBe(short + rowsPerBlock);
  });
});

describe('the extensions of a key', () => {
  it.each([
    ['a.b/20261101T100000Z-20261101T110000Z.jsonl', 'jsonl', ''],
    ['20261101T100000Z-20261101T110000Z-3-g2.csv.zst', 'csv', 'zst'],
    ['20261101T100000Z-20261101T110000Z-0.3.jsonl.gz', 'jsonl', 'gz'],
    ['20261101T100000Z-20261101T110000Z-0.3-g2.parquet', 'parquet', ''],
    ['20261101T100000Z-20261101T110000Z.constructor', '', ''],
  ])('of %s are read', (key, format, codec) => {
    expect(extensionsOf(key)).toEqual({ format, codec });
  });
});

describe('the rows of several sequences of files', () => {
  /** Sequences of rows whose times are the numbers, and what was read of them. */
  function sequencesOf(...times: readonly (readonly number[])[]) {
    const seen = { open: 0, maxOpen: 0 };
    async function* rowsOf(numbers: readonly number[], position: number): AsyncGenerator<ComparedRow> {
      seen.open += 1;
      seen.maxOpen = Math.max(seen.maxOpen, seen.open);
      try {
        for (const number of numbers) {
          await nextTurn();
          const values = [String(position), null, undefined, 'é'.repeat(number % 7)];
          yield { inserted_at: String(number).padStart(6, '0'), id: 'a', values };
        }
      } finally {
        seen.open -= 1;
      }
    }
    return { seen, sequences: times.map(rowsOf) };
  }

  it('are merged by their keys, and by their sequences where keys are equal', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 8 }), { maxLength: 9 }),
        async (unordered) => {
          const times = unordered.map((numbers) => numbers.toSorted((one, other) => one - other));
          const all = (await Promise.all(sequencesOf(...times).sequences.map(allItems))).flat();
          const expected = all.toSorted((one, other) =>
            one.inserted_at < other.inserted_at ? -1 : one.inserted_at > other.inserted_at ? 1 : 0,
          );
          expect(await allItems(mergedByKey(sequencesOf(...times).sequences))).toEqual(expected);
        },
      ),
      { numRuns: randomCases(100) },
    );
  });

  it('are read one sequence after the other if there are many, however many rows they have', async () => {
    const numbers = Array.from({ length: 3_000 }, (_, number) => number);
    const few = sequencesOf(numbers, numbers);
    expect(await allItems(mergedByKey(few.sequences))).toHaveLength(2 * numbers.length);
    expect(few.seen).toEqual({ open: 0, maxOpen: 2 });
    const many = sequencesOf(...Array.from({ length: 9 }, () => numbers));
    const rows = await allItems(mergedByKey(many.sequences));
    expect(rows).toHaveLength(9 * numbers.length);
    expect(rows.slice(9, 18).map(({ values }) => Number(values[0]))).toEqual([...Array(9).keys()]);
    expect(many.seen).toEqual({ open: 0, maxOpen: 1 });
  });

  it('are closed when no more of them are read, and when one cannot be read', async () => {
    for (const count of [2, 9]) {
      const { seen, sequences } = sequencesOf(...Array.from({ length: count }, () => [1, 2, 3]));
      for await (const row of mergedByKey(sequences)) if (row.inserted_at === '000002') break;
      expect(seen.open).toBe(0);
      const failing = sequencesOf(...Array.from({ length: count }, () => [1, 2, 3]));
      async function* broken(): AsyncGenerator<ComparedRow> {
        await nextTurn();
        yield* [];
        throw new Error('broken');
      }
      await expect(allItems(mergedByKey([...failing.sequences, broken()]))).rejects.toThrow('broken');
      expect(failing.seen.open).toBe(0);
    }
  });
});
