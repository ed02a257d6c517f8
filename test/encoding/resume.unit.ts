import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import {
  parquetCompressions,
  textCompressions,
  type EncodedBlock,
  type EncoderState,
  type EncodingOptions,
} from '../../src/encoding/encoder.ts';
import { columnsOf, int64, keyedBlock } from './copy_block.ts';
import { randomCases } from '../setup/effort.ts';

const pool = createEncoderPool({ threads: 2 });
afterAll(() => pool.close());

const columns = columnsOf('text', 'timestamp', 'json');
const on_bad_row = 'reject' as const;
const options: EncodingOptions[] = [
  ...(['JSONLines', 'CSV'] as const).flatMap((file_format) =>
    [null, ...textCompressions].map((compression) => ({ file_format, compression, on_bad_row })),
  ),
  ...[null, ...parquetCompressions].map((compression) => ({
    file_format: 'Parquet' as const,
    compression,
    on_bad_row,
  })),
];
const encoders = options.map((given) => pool.fileEncoder(given, columns));

/** Random blocks of rows, some unrepresentable, and whether a part ends after the block. */
const blocks = fc.array(
  fc.record({
    rows: fc.array(fc.tuple(fc.option(fc.string({ unit: 'binary' })), fc.boolean()), { maxLength: 4 }),
    endsPart: fc.boolean(),
  }),
  { minLength: 1, maxLength: 8 },
);
type Blocks = typeof blocks extends fc.Arbitrary<infer Value> ? Value : never;

const blockOf = (rows: Blocks[number]['rows']) => ({
  ...keyedBlock(
    columns,
    rows.map(([text, fits]) => [
      text === null ? null : Buffer.from(text),
      int64(fits ? 0n : 2n ** 63n - 1n),
      Buffer.from('\u0001{"a": 1}'),
    ]),
  ),
  first: { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'a' },
  last: { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'b' },
});

describe.each(encoders.filter(({ resumable }) => resumable))('a file of $identity', (encoder) => {
  it('has the same bytes wherever another process resumes it', async () => {
    await fc.assert(
      fc.asyncProperty(blocks, async (given) => {
        const encoded: EncodedBlock[] = [];
        for (const { rows } of given) encoded.push(await encoder.encode(blockOf(rows)));
        const whole = encoder.assemble([]);
        const chunks: Buffer[] = [];
        const states: EncoderState[] = [];
        const cuts: { blocks: number; parts: number }[] = [];
        for (const [index, block] of encoded.entries()) {
          chunks.push(await whole.append(block));
          if (!given[index]?.endsPart) continue;
          states.push(whole.takeState());
          cuts.push({ blocks: index + 1, parts: states.length });
        }
        const file = Buffer.concat([...chunks, await whole.finish()]);
        // As read from the journal.
        const journalled = JSON.parse(JSON.stringify(states)) as EncoderState[];
        expect(journalled).toEqual(states);
        for (const split of cuts) {
          const resumed = encoder.assemble(journalled.slice(0, split.parts));
          const rest: Buffer[] = [];
          for (const block of encoded.slice(split.blocks)) rest.push(await resumed.append(block));
          rest.push(await resumed.finish());
          expect(Buffer.concat([...chunks.slice(0, split.blocks), ...rest]).equals(file)).toBe(true);
        }
      }),
      { numRuns: randomCases(60) },
    );
  });

  it('is not resumed from the state of another encoder', () => {
    expect(() => encoder.assemble(['nothing of the kind'])).toThrow(TypeError);
  });
});

it('only brotli files are not resumable', () => {
  expect(encoders.filter(({ resumable }) => !resumable).map(({ identity }) => identity)).toEqual([
    `jsonlines+brotli-4/1 brotli/${process.versions.brotli}`,
    `csv+brotli-4/1 brotli/${process.versions.brotli}`,
  ]);
});

it('no two encoders share an identity', () => {
  expect(new Set(encoders.map(({ identity }) => identity)).size).toBe(options.length);
});

it('extensions consist of format and compression', () => {
  expect(new Set(encoders.map(({ extension }) => extension))).toEqual(
    new Set(['jsonl', 'jsonl.gz', 'jsonl.zst', 'jsonl.br', 'csv', 'csv.gz', 'csv.zst', 'csv.br', 'parquet']),
  );
});
