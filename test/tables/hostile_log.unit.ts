import { describe, expect, it } from '@jest/globals';
import { bounds } from '../../src/config/bounds.ts';
import { type NamedBytes, parseCommit } from '../../src/tables/actions.ts';
import { decodeCheckpoint, encodeCheckpoint } from '../../src/tables/checkpoint.ts';
import { fieldsOf } from '../../src/tables/schema.ts';
import { applyActions, emptyState } from '../../src/tables/state.ts';
import { parquetOf, withFooter } from '../encoding/parquet/hostile_parquet.ts';

const ofText = (text: string): NamedBytes => ({ name: 'a commit', bytes: Buffer.from(text) });
const ofBytes = (bytes: Buffer): NamedBytes => ({ name: 'checkpoint', bytes });

const damaged = { type: 'TableDamaged' };

/** A checkpoint of a table with a file. */
function checkpoint(): Buffer {
  const state = emptyState();
  applyActions(
    state,
    parseCommit(
      ofText(
        [
          '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}',
          '{"metaData":{"id":"i","format":{"provider":"parquet"},"schemaString":"{\\"fields\\":[]}","partitionColumns":["date"]}}',
          '{"add":{"path":"a.parquet","partitionValues":{"date":"2026-01-01"},"size":1,"modificationTime":2,"dataChange":true}}',
        ].join('\n'),
      ),
    ),
  );
  return encodeCheckpoint(state, 0).bytes;
}

describe('a commit of another program', () => {
  it.each([
    ['is null', 'null'],
    ['is a number', '5'],
    ['is a list', '[]'],
    ['adds a number', '{"add":5}'],
    ['adds a file without a path', '{"add":{"size":1}}'],
    [
      'adds a file whose path is a number',
      '{"add":{"path":1,"size":1,"modificationTime":1,"dataChange":true}}',
    ],
    [
      'has tags of numbers',
      '{"add":{"path":"a","size":1,"modificationTime":1,"dataChange":true,"tags":{"a":1}}}',
    ],
    ['has a protocol of texts', '{"protocol":{"minReaderVersion":"1","minWriterVersion":2}}'],
    ['has a schema that is a number', '{"metaData":{"id":"i","schemaString":1,"partitionColumns":[]}}'],
    ['is nested without an end', '['.repeat(100_000)],
    ['has too many values', `{"a":[${'0,'.repeat(bounds.tableValues.max)}0]}`],
    [
      'has a schema of megabytes',
      JSON.stringify({
        metaData: {
          id: 'i',
          format: { provider: 'p' },
          schemaString: ' '.repeat(2_000_000),
          partitionColumns: [],
        },
      }),
    ],
  ])('that %s is no commit', (_, text) => {
    expect(() => [...parseCommit(ofText(text))]).toThrow(expect.objectContaining(damaged));
  });

  it('may say anything of itself', () => {
    const [line] = parseCommit(
      ofText('{"commitInfo":{"timestamp":"now","operation":5,"run_id":[],"interval":7}}'),
    );
    expect(line?.commitInfo).toEqual({});
  });
});

describe('the schema of a table', () => {
  it.each(['null', '5', '{"fields":5}', '{"fields":[null]}', '{"fields":[{"name":5}]}', '['.repeat(100_000)])(
    'that is %.20s is none',
    (text) => {
      expect(() => fieldsOf(text)).toThrow(expect.objectContaining(damaged));
    },
  );
});

describe('a checkpoint', () => {
  it('of exportd is read', async () => {
    const { live, metaData } = await decodeCheckpoint(ofBytes(checkpoint()));
    expect([...live.keys()]).toEqual(['a.parquet']);
    expect(live.get('a.parquet')?.partitionValues).toEqual({ date: '2026-01-01' });
    expect(metaData?.partitionColumns).toEqual(['date']);
  });

  const body = Buffer.from([8, 0, 0, 0, 255, 255, 255, 255, 15, 1]);
  it.each<[string, () => Buffer, RegExp]>([
    ['is text', () => Buffer.from('{}'), /not a checkpoint/],
    ['is cut', () => checkpoint().subarray(0, 400), /not a checkpoint/],
    [
      'has a page of two billion values',
      () => parquetOf({ body, uncompressed: body.length, values: 2 ** 31 - 1, encoding: 8 }, { rows: 2 }),
      /more values than its row group/,
    ],
    [
      'says that it has two billion values',
      () => parquetOf({ body, uncompressed: body.length, values: 2 ** 31 - 1, encoding: 8 }),
      /too many values/,
    ],
    [
      'repeats a value two billion times',
      () => {
        // A run of 2^31 - 1 times the position 0 in a dictionary, of a page with two values.
        const run = Buffer.from([1, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0]);
        return parquetOf({ body: run, uncompressed: run.length, values: 2, encoding: 8 });
      },
      /repeats more values/,
    ],
    [
      'has a page that unpacks to a gigabyte',
      () => parquetOf({ body, uncompressed: 2 ** 30, values: 2 }, { codec: 6 }),
      /pages of a column have more than/,
    ],
    [
      'has a footer of nested structs',
      () => withFooter(Buffer.from('PAR1'), Buffer.alloc(500_000, 0x1c)),
      /nested/,
    ],
    [
      'has a footer that is longer than it',
      () => withFooter(Buffer.from('PAR1'), Buffer.alloc(4)).fill(0xff, 8, 12),
      /footer/,
    ],
  ])('that %s is damaged', async (_, create, message) => {
    const error = await decodeCheckpoint(ofBytes(create())).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ ...damaged, message: expect.stringMatching(message) });
  });

  it.each([
    ['an add without a size', { path: 'a.parquet', partitionValues: {}, dataChange: true }],
    ['an add without a path', { size: 1, modificationTime: 1, partitionValues: {}, dataChange: true }],
  ])('with %s is damaged', async (_, add) => {
    const state = emptyState();
    state.live.set('a', add as unknown as Parameters<typeof state.live.set>[1]);
    await expect(decodeCheckpoint(ofBytes(encodeCheckpoint(state, 0).bytes))).rejects.toMatchObject(damaged);
  });
});
