import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { digestText, type VerifiedRow } from '../../../src/verify/row.ts';
import { readJsonLines } from '../../../src/verify/files/json_lines.ts';

const shape = {
  id: 'uuid',
  columns: [
    { name: 'properties', type: 'json' },
    { name: 'event', type: 'text' },
    { name: 'version', type: 'bigint' },
  ],
};

async function read(text: string, chunkSize = 65_536): Promise<VerifiedRow[]> {
  const bytes = Buffer.from(text);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkSize)
      yield await Promise.resolve(bytes.subarray(at, at + chunkSize));
  }
  const rows: VerifiedRow[] = [];
  for await (const row of readJsonLines(chunks(), shape)) rows.push(row);
  return rows;
}

const line = (properties: string, rest = '"event":"a","version":1'): string =>
  `{"uuid":"u","_inserted_at":"t","properties":${properties},${rest}}\n`;

describe('JSON lines', () => {
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
