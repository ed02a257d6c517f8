/** Logs of tables that are larger than any of exportd: what is too much is not read, and what is read is parsed elsewhere. */
import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { bounds } from '../../src/config/bounds.ts';
import { type TableStore, tableOf as openTable } from '../../src/tables/table_store.ts';
import { describeTable, readHistory } from '../../src/tables/describe.ts';
import { readCommit, readSnapshot } from '../../src/tables/log.ts';
import { bucketAt, openBucket } from '../destination/bucket_requests.ts';
import { type FakeServer, startFakeServer } from '../destination/fake_server.ts';

const { signal } = new AbortController();
const mebibyte = 1_048_576;
let server: FakeServer;
/** Bytes of objects that the server has sent. */
let sent = 0;
afterEach(() => server.close());

/** An object: its bytes, or how many zeros it has. */
type Content = Buffer | number;

function send(response: ServerResponse, content: Content): void {
  const length = typeof content === 'number' ? content : content.length;
  response.on('error', () => undefined).writeHead(200, { etag: '"one"', 'content-length': length });
  let left = length;
  const chunk = Buffer.alloc(65_536);
  const next = (): void => {
    while (left > 0 && !response.destroyed) {
      const part = typeof content === 'number' ? chunk.subarray(0, left) : content;
      left -= part.length;
      sent += part.length;
      if (response.write(part)) continue;
      response.once('drain', next);
      return;
    }
    response.end();
  };
  next();
}

const commitName = (version: number): string => `_delta_log/${String(version).padStart(20, '0')}.json`;

/** The store of a table whose log has these objects, by name. */
async function tableOf(objects: Readonly<Record<string, Content>>): Promise<TableStore> {
  sent = 0;
  server = await startFakeServer(({ path }, response) => {
    const url = new URL(path, 'http://server');
    if (url.searchParams.has('list-type')) {
      const prefix = url.searchParams.get('prefix') ?? '';
      const keys = Object.keys(objects)
        .map((name) => `table/${name}`)
        .filter((key) => key.startsWith(prefix));
      response.end(
        `<ListBucketResult><Name>bucket</Name><KeyCount>${keys.length}</KeyCount>${keys
          .map((key) => `<Contents><Key>${key}</Key><ETag>"one"</ETag></Contents>`)
          .join('')}</ListBucketResult>`,
      );
      return;
    }
    const content = objects[url.pathname.replace('/bucket/table/', '')];
    if (content === undefined)
      response.writeHead(404).end('<Error><Code>NoSuchKey</Code><Message>No.</Message></Error>');
    else send(response, content);
  });
  const config = { file_format: 'Parquet', table_format: 'delta', prefix: 'table/{year}' };
  const table = openTable(openBucket(bucketAt(server.endpoint), config), 'events');
  if (!table) throw new Error('The destination has no table.');
  return table;
}

const commits = (contents: readonly Content[]): Readonly<Record<string, Content>> =>
  Object.fromEntries(contents.map((content, version) => [commitName(version), content]));

const definition = [
  '{"commitInfo":{"operation":"WRITE","run_id":"run","generation":2}}',
  '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}',
  '{"metaData":{"id":"i","format":{"provider":"parquet"},"schemaString":"{\\"fields\\":[]}","partitionColumns":[]}}',
].join('\n');
const adds = (count: number): string =>
  Array.from(
    { length: count },
    (_, index) =>
      `{"add":{"path":"${index}.parquet","partitionValues":{},"size":2,"modificationTime":1,"dataChange":true,"stats":"{\\"numRecords\\":3}"}}`,
  ).join('\n');

const tooLarge = { type: 'TableTooLarge', transient: false };

describe('of a log whose commits have 255 MB', () => {
  const large = Array.from({ length: 8 }, () => 255 * mebibyte);

  it('the history says so, and reads none', async () => {
    const versions = await readHistory(await tableOf(commits(large)), { before: null, limit: 50 }, signal);
    expect(versions.map(({ writer }) => writer)).toEqual(large.map(() => 'unknown'));
    expect(versions[0]?.description).toMatch(/at most 64 MiB are read at once/);
    expect(sent).toBeLessThan(large.length * 8 * mebibyte);
  });

  it.each([describeTable, readSnapshot])('%p fails, and reads none', async (read) => {
    await expect(read(await tableOf(commits(large)), signal)).rejects.toMatchObject(tooLarge);
    expect(sent).toBeLessThan(8 * mebibyte);
  });
});

it('commits that are too large together are read up to the bound', async () => {
  const table = await tableOf(commits(Array.from({ length: 34 }, () => 13 * mebibyte)));
  await expect(describeTable(table, signal)).rejects.toMatchObject(tooLarge);
  expect(sent).toBeLessThan(bounds.tableLogBytes.max + 8 * mebibyte);
});

it('the commits of a page of history share the bound', async () => {
  const table = await tableOf(commits(Array.from({ length: 20 }, () => 13 * mebibyte)));
  await readHistory(table, { before: null, limit: 50 }, signal);
  // What was sent of the others is in the buffers of their connections.
  expect(sent).toBeLessThan(bounds.tableLogBytes.max + 20 * 5 * mebibyte);
});

describe('a commit that is longer than what is parsed here', () => {
  const content = Buffer.from(`${definition}\n${adds(5_000)}`);

  it('says what it says', async () => {
    const table = await tableOf(commits([content]));
    expect(await readCommit(table, 0, signal)).toMatchObject({
      publication: { run_id: 'run', generation: 2 },
      startsLog: true,
      isPlain: false,
      adds: 5_000,
    });
    expect(await describeTable(table, signal)).toMatchObject({ files: 5_000, rows: 15_000, bytes: 10_000 });
    expect((await readSnapshot(table, signal))?.state.live.size).toBe(5_000);
  });

  it('and is none is damaged, by its name', async () => {
    const table = await tableOf(commits([Buffer.from(`${definition}\n{"a":"${'x'.repeat(100_000)}"`)]));
    const damaged = { type: 'TableDamaged', message: expect.stringMatching(/0000\.json is not a commit/) };
    await expect(readSnapshot(table, signal)).rejects.toMatchObject(damaged);
    await expect(readCommit(table, 0, signal)).rejects.toMatchObject(damaged);
  });
});

it('a hint that is larger than any is passed over', async () => {
  const table = await tableOf({
    ...commits([Buffer.from(definition)]),
    '_delta_log/_last_checkpoint': 200_000,
  });
  expect((await readSnapshot(table, signal))?.version).toBe(0);
});
