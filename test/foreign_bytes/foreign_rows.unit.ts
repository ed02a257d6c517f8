/** Rows of files that another process reads: the same rows and errors as here, and no fault of it reaches this one. */
import { describe, expect, it } from '@jest/globals';
import { foreignBytesOf } from '../../src/foreign_bytes/foreign_bytes.ts';
import { readForeignRows, readRejectedKeys } from '../../src/readers/foreign_rows.ts';
import { readRows } from '../../src/readers/read_rows.ts';
import { FileUnreadable, KeysMissing } from '../../src/readers/row.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { allItems } from '../setup/all_items.ts';

const foreign = foreignBytesOf(s3Settings({ EXPORTD_READER_MEMORY: '96MiB' }), 1);
const of = { foreign, signal: new AbortController().signal };
const shape = { id: 'uuid', columns: [{ name: 'properties', type: 'json' }] };
const mebibyte = 1_048_576;

async function* chunksOf(text: string, times = 1): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let sent = 0; sent < times; sent += 1) {
    await Promise.resolve();
    yield bytes;
  }
}

const lineOf = (index: number): string =>
  `${JSON.stringify({ uuid: `id ${index}`, _inserted_at: '2026-11-01T00:00:00.000000Z', properties: { index } })}\n`;
const fileOf = (key: string, bytes: number) => ({ key, rows: 5_000, bytes });

describe('a file', () => {
  it('has the rows that are read here', async () => {
    const text = Array.from({ length: 5_000 }, (_, index) => lineOf(index)).join('');
    const file = fileOf('a.jsonl', text.length);
    const rows = await allItems(readForeignRows(of, file, chunksOf(text), shape));
    expect(rows).toEqual(await allItems(readRows(file, chunksOf(text), shape)));
    expect(rows.length).toBe(5_000);
  });

  it.each([
    ['without keys', 'a.jsonl', '{"a":1}\n', KeysMissing],
    ['that is no JSON', 'a.jsonl', 'x\n', FileUnreadable],
    ['whose name says nothing', 'a.txt', 'x\n', FileUnreadable],
    ['with an id of megabytes', 'a.jsonl', lineOf(1).replace('id 1', 'x'.repeat(mebibyte)), FileUnreadable],
  ])('%s is unreadable', async (_, key, text, kind) => {
    const error = await allItems(readForeignRows(of, fileOf(key, text.length), chunksOf(text), shape)).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(kind);
  });

  it('whose header has millions of columns costs a process, and the next file is read', async () => {
    const times = 60;
    const commas = ','.repeat(mebibyte);
    const file = fileOf('a.csv', times * mebibyte);
    await expect(allItems(readForeignRows(of, file, chunksOf(commas, times), shape))).rejects.toThrow(
      'it needs more than 96 MiB of memory to read',
    );
    const text = lineOf(1);
    const next = readForeignRows(of, fileOf('a.jsonl', text.length), chunksOf(text), shape);
    expect((await allItems(next)).map(({ id }) => id)).toEqual(['id 1']);
  });
});

describe('rejected rows', () => {
  it('have their keys, where they have a time', async () => {
    const text = '{"id":"a","row":{"_inserted_at":"2026"}}\n{"id":"b","row":null}\n';
    expect(await allItems(readRejectedKeys(of, chunksOf(text)))).toEqual([
      { inserted_at: '2026', id: 'a' },
      { inserted_at: '', id: 'b' },
    ]);
  });

  it.each(['null\n', '5\n', '{\n', '{"id":5}\n'])('that are %j are unreadable', async (text) => {
    await expect(allItems(readRejectedKeys(of, chunksOf(text)))).rejects.toBeInstanceOf(FileUnreadable);
  });

  it('of 60 MB of brackets in one line cost a process, and the next ones are read', async () => {
    const line = chunksOf('[],'.repeat(400_000), 50);
    const many = (async function* () {
      yield Buffer.from('{"id":"a","row":[');
      yield* line;
      yield Buffer.from('[]]}\n');
    })();
    await expect(allItems(readRejectedKeys(of, many))).rejects.toThrow(/96 MiB/);
    expect(await allItems(readRejectedKeys(of, chunksOf('{"id":"b","row":null}\n')))).toHaveLength(1);
  });
});
