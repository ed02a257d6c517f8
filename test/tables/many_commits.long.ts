import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { ListedObject } from '../../src/destination/folder_store.ts';
import type { TableStore } from '../../src/tables/table_store.ts';
import { additionOf, commitOf, type TablePublication } from '../../src/tables/commit.ts';
import { foreignBytesOf } from '../../src/foreign_bytes/foreign_bytes.ts';
import { readSnapshot, writeCommit } from '../../src/tables/log.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { collectGarbage } from '../setup/collect_garbage.ts';
import { isMaintained, maintainLog } from '../../src/tables/retention.ts';

const signal = new AbortController().signal;

/** The bytes of the heap that are in use. */
function heapAfterCollection(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** The log of a table in memory, which counts what is read and written. */
function createStore() {
  const objects = new Map<string, { bytes: Buffer; etag: string }>();
  const requests: string[] = [];
  let writes = 0;
  const put = (name: string, bytes: Buffer): string => {
    requests.push(`PUT ${name}`);
    const etag = String((writes += 1));
    objects.set(name, { bytes, etag });
    return etag;
  };
  const store: TableStore = {
    location: 'here',
    root: 'events',
    settings: s3Settings(),
    partitionColumns: [],
    name: 's3://bucket/events',
    foreign: foreignBytesOf(s3Settings(), 1),
    nameOf: (name) => `s3://bucket/events/${name}`,
    requireConditionalWrites: () => Promise.resolve(),
    create: (name, bytes) => Promise.resolve(objects.has(name) ? null : put(name, bytes)),
    replace: (name, bytes) => {
      put(name, bytes);
      return Promise.resolve();
    },
    read: (name) => {
      requests.push(`GET ${name}`);
      return Promise.resolve(objects.get(name) ?? null);
    },
    list: (folder, after) => {
      requests.push('LIST');
      const found: ListedObject[] = [...objects]
        .filter(([name]) => name.startsWith(folder) && name > `${folder}${after}`)
        .map(([name, { etag }]) => ({ name, etag, modified_at: new Date() }))
        .sort((one, other) => (one.name < other.name ? -1 : 1));
      return Promise.resolve(found);
    },
    delete: (name) => {
      objects.delete(name);
      return Promise.resolve();
    },
  };
  return { store, objects, requests };
}

const hourMs = 3_600_000;

/** The publication of the hour with this number. */
function publicationOf(hour: number): TablePublication {
  const start = new Date(Date.parse('2026-01-01T00:00:00.000Z') + hour * hourMs);
  const interval = { start: start.toISOString(), end: new Date(start.getTime() + hourMs).toISOString() };
  const key = { inserted_at: interval.start.replace('000Z', '000000Z'), id: 'a' };
  return {
    batch_export_id: 'export',
    run_id: `run ${hour}`,
    generation: 1,
    interval,
    fingerprint: {},
    columns: [{ name: '_inserted_at', type: 'timestamp' }],
    hasKeys: true,
    earlier: [],
    kept: [],
    replaced: null,
    files: [
      {
        key: `events/2026/${hour}.parquet`,
        rows: 100,
        bytes: 4_000,
        crc32: '00000000',
        first: key,
        last: key,
        fingerprint: { hash: 'h', width_ms: 1, encoded_buckets: '' },
      } as unknown as TablePublication['files'][number],
    ],
    now: Date.now(),
  };
}

describe('a table of 10,000 versions', () => {
  it('is opened with one checkpoint and at most ten commits, and gets a version with one request', async () => {
    const { store, requests, objects } = createStore();
    const first = commitOf(store, null, publicationOf(0));
    if (first) await writeCommit(store, first, signal);
    const versions = 10_000;
    const before = heapAfterCollection();
    let readsOfMaintenance = 0;
    for (let version = 1; version < versions; version += 1) {
      requests.length = 0;
      const addition = additionOf(store, version, publicationOf(version));
      expect(await writeCommit(store, addition, signal)).not.toBeNull();
      expect(requests).toHaveLength(1);
      // Checkpoints of so many versions take minutes to write; those before the last ones make no difference.
      if (isMaintained(store, version) && (version > versions - 30 || version % 2_000 === 0)) {
        requests.length = 0;
        await maintainLog(store, signal);
        readsOfMaintenance = requests.filter((request) => request.startsWith('GET')).length;
      }
    }
    // The last checkpoint, its name, and ten commits.
    expect(readsOfMaintenance).toBeLessThanOrEqual(12);
    requests.length = 0;
    const found = async () => {
      const snapshot = await readSnapshot(store, signal);
      return [snapshot?.version, snapshot?.state.live.size];
    };
    expect(await found()).toEqual([versions - 1, versions]);
    expect(requests.filter((request) => request === 'LIST')).toHaveLength(1);
    expect(requests.filter((request) => request.includes('.checkpoint.parquet'))).toHaveLength(1);
    expect(requests.filter((request) => request.endsWith('.json')).length).toBeLessThanOrEqual(10);
    const checkpoint = [...objects].findLast(([name]) => name.endsWith('.checkpoint.parquet'));
    expect(checkpoint?.[1].bytes.length).toBeLessThan(2_000_000);
    // What the newest commits say is as long as what the first ones do.
    const lengthOf = (version: number) =>
      objects.get(`_delta_log/${String(version).padStart(20, '0')}.json`)?.bytes.length ?? 0;
    expect(lengthOf(versions - 1) - lengthOf(1)).toBeLessThan(50);
    // A worker keeps nothing of them: once the bucket of this test is empty, the memory is what it was before.
    objects.clear();
    requests.length = 0;
    // This turn of the event loop holds the last message of the process that parses checkpoints.
    await setImmediate();
    expect(heapAfterCollection() - before).toBeLessThan(3 * 1_024 * 1_024);
    expect((await readSnapshot(store, signal))?.version).toBeUndefined();
  });
});
