import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { advanceBackfill } from '../../src/decisions/backfills.ts';
import { collapseHistory } from '../../src/decisions/collapse_history.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { readArchiveStatus, type ReadArchive } from '../../src/journal/archives.ts';
import {
  archiveJournal,
  archiveLock,
  type ArchiveStep,
  type ArchiveStore,
  createArchiveReader,
  findArchiveProblem,
  openArchive,
} from '../../src/maintenance/archive_journal.ts';
import { buildProjections, rebuild, switchProjections } from '../../src/projections/registry.ts';
import { readHistory } from '../../src/verify/owed_time.ts';
import { createCommander, definition, minutesAgo, quickPolicies } from '../decisions/commander.ts';
import { appendLaggingExport } from '../decisions/lagging_export.ts';
import { createSimulatedRuns } from '../decisions/simulated_runs.ts';
import { exportBody, openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { projectionContents } from '../projections/projection_contents.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { waitFor } from '../setup/wait_for.ts';

const policies = quickPolicies();
const retention = { historyMs: 0, deletedExportMs: undefined, idempotencyKeyMs: 0, newestRuns: 0 };
const never = (): boolean => false;
const eventsPerFile = 7;

describe('the archive of the journal', () => {
  const bucket = useTestBucket();
  let harness: ApiHarness;
  let settings: Settings;
  let store: ArchiveStore;
  let readArchive: ReadArchive;
  let commander: ReturnType<typeof createCommander>;
  let runs: ReturnType<typeof createSimulatedRuns>;
  const environment = () => ({
    DATABASE_URL: harness.database.url,
    EXPORTD_ARCHIVE_BUCKET: bucket.bucket,
    EXPORTD_ARCHIVE_PREFIX: 'archive',
    EXPORTD_ARCHIVE_ENDPOINT_URL: bucket.endpoint,
    EXPORTD_ARCHIVE_ACCESS_KEY_ID: bucket.accessKeyId,
    EXPORTD_ARCHIVE_SECRET_ACCESS_KEY: bucket.secretAccessKey,
  });
  const pool = () => harness.database.pool;

  beforeAll(async () => {
    harness = await openApiHarness();
    settings = readSettings(environment());
    const opened = openArchive(settings, new AbortController().signal);
    if (!opened) throw new Error('There is no archive.');
    store = opened;
    readArchive = createArchiveReader(store);
  });
  afterAll(async () => {
    store.close();
    await harness.close();
  });

  const publish = async (id: string): Promise<void> =>
    runs.publish(id, await runs.start(id), `file of ${id}`);

  /** Publishes the runs of a schedule. */
  async function exportAll(): Promise<void> {
    const done = new Set<string>();
    for (let isDone = false; !isDone;) {
      const { start_runs } = await commander.step();
      const ids = start_runs.map(({ run_id }) => run_id).filter((id) => !done.has(id));
      for (const id of ids) await publish(id);
      for (const id of ids) done.add(id);
      isDone = ids.length === 0;
    }
  }

  /** An export with runs of its schedule and of a backfill, and a history of changes. */
  beforeEach(async () => {
    const journal = harness.journal;
    commander = createCommander(journal, policies, undefined, harness.projectId);
    runs = createSimulatedRuns(journal, createRunRecorder(journal), commander);
    // No minute becomes due while the test runs.
    await appendLaggingExport(journal, commander.batchExportId, {
      team_id: harness.projectId,
      definition: { ...definition, end_at: minuteAgo(0).toISOString() },
      scheduled_until: minutesAgo(6),
      paused: true,
    });
    await pool().query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config)
       values ($1, 1, 'S3', $2)`,
      [
        commander.batchExportId,
        {
          ...exportBody().destination.config,
          aws_secret_access_key: undefined,
          aws_access_key_id: undefined,
        },
      ],
    );
    await commander.command('unpause');
    await exportAll();
    await publish(await runs.create(20));
    const { rows } = await pool().query<{ id: string }>(
      'select id from exportd.backfills where finished_at is null',
    );
    for (const { id } of rows) await advanceBackfill(journal, policies, id);
    await commander.command('pause');
    await commander.command('unpause');
  });

  const collapse = () => collapseHistory(harness.journal, { ...retention, keepsUnarchived: true }, never);
  const archive = (more: ArchiveStore = store) =>
    archiveJournal(pool(), more, { historyMs: 0, eventsPerFile }, never);

  /** A list without the minutes that have ended since the test began. */
  const untilEnd = (rows?: readonly { readonly reason?: unknown }[]) =>
    rows?.filter(({ reason }) => reason !== 'after end_at');

  /** What the API says of the export. */
  async function answers(): Promise<Readonly<Record<string, string>>> {
    const own = `batch_exports/${commander.batchExportId}`;
    const project = `/api/projects/${harness.projectId}/console/${own}`;
    const found: Record<string, string> = {};
    for (const path of [
      ...[
        'batch_exports/',
        `${own}/`,
        `${own}/runs/`,
        `${own}/intervals/`,
        `${own}/backfills/`,
        `${own}/logs/`,
      ],
      ...[`${project}/timeline/`, `${project}/active_runs/`],
    ]) {
      const { status, text } = await harness.call('GET', path);
      expect([path, status]).toEqual([path, 200]);
      const { now: _now, count: _count, results, entries, ...others } = JSON.parse(text) as Answer;
      found[path] = JSON.stringify({ ...others, results: untilEnd(results), entries: untilEnd(entries) });
    }
    // What `exportd verify` knows of the schedule.
    const { events, scheduledUntil, collapsed } = await readHistory(pool(), commander.batchExportId);
    return { ...found, history: JSON.stringify({ events, scheduledUntil, collapsed }) };
  }

  interface Answer {
    readonly now?: string;
    readonly count?: number;
    readonly results?: readonly object[];
    readonly entries?: readonly object[];
  }
  interface StoredEvent {
    readonly global_position: number;
    readonly event_id: string;
    readonly data: string;
  }
  const journalEvents = async (): Promise<readonly StoredEvent[]> =>
    (
      await pool().query<StoredEvent>(
        'select global_position, event_id, data::text from exportd.journal_events order by global_position',
      )
    ).rows;

  /** The events of all files that the journal knows. */
  async function archivedEvents(): Promise<StoredEvent[]> {
    const { rows } = await pool().query<{ name: string }>(
      'select name from exportd.journal_archives order by first_position',
    );
    const events: StoredEvent[] = [];
    for (const { name } of rows) {
      const bytes = await store.read(name);
      const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
      for (const row of await parquetReadObjects({ file, compressors }))
        events.push({
          global_position: Number(row.global_position),
          event_id: row.event_id as string,
          data: row.data as string,
        });
    }
    return events;
  }
  const idsOf = (events: readonly StoredEvent[]) => new Set(events.map(({ event_id }) => event_id));

  it('keeps every answer, and has every event that leaves the database', async () => {
    const whole = await journalEvents();
    await collapse();
    // Nothing is gone before it is archived.
    expect(await journalEvents()).toEqual(expect.arrayContaining([...whole]));
    const [before, contents] = [await answers(), await projectionContents(pool())];
    const all = await journalEvents();
    const { ranges, events } = await archive();
    expect(ranges).toBeGreaterThan(3);
    expect(events).toBe(ranges * eventsPerFile);
    await collapse();
    const left = idsOf(await journalEvents());
    expect(left.size).toBeLessThan(all.length / 2);
    const archived = await archivedEvents();
    expect(archived).toEqual(all.slice(0, archived.length));
    expect(all.every(({ event_id }) => left.has(event_id) || idsOf(archived).has(event_id))).toBe(true);
    expect(await answers()).toEqual(before);

    await expect(rebuild(pool())).rejects.toMatchObject({
      name: 'ArchiveNeeded',
      message: expect.stringContaining(`s3://${bucket.bucket}/archive/journal/`),
    });
    await rebuild(pool(), { readArchive, restarts: true, eventsPerBatch: 5 });
    expect(await projectionContents(pool())).toBe(contents);
    expect(await answers()).toEqual(before);
    expect(await readArchiveStatus(pool())).toMatchObject({
      ranges,
      events,
      last_position: archived.at(-1)?.global_position,
    });
    expect(await findArchiveProblem(pool(), settings)).toBeNull();
    // A purged export does not come back from the archive.
    await commander.command('delete');
    expect(await collapseHistory(harness.journal, { ...retention, deletedExportMs: 0 }, never)).toMatchObject(
      {
        purged_exports: 1,
      },
    );
    const purged = await projectionContents(pool());
    await rebuild(pool(), { readArchive, restarts: true });
    expect(await projectionContents(pool())).toBe(purged);
    // The manifest has what a reader needs to check the file.
    const manifest = JSON.parse((await store.read(await newestName('json'))).toString()) as object;
    expect(manifest).toMatchObject({
      version: 1,
      events: eventsPerFile,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  const newestName = async (extension: string): Promise<string> => {
    const { rows } = await pool().query<{ name: string }>(
      'select name from exportd.journal_archives order by last_position desc limit 1',
    );
    return (rows[0]?.name ?? '').replace(/parquet$/, extension);
  };

  it('loses nothing when it is killed after any step', async () => {
    await collapse();
    const all = await journalEvents();
    const contents = await projectionContents(pool());
    for (const step of ['file', 'manifest', 'recorded', 'deleted'] satisfies ArchiveStep[]) {
      const killed = spawn(process.execPath, [join(import.meta.dirname, 'archive_program.ts')], {
        env: {
          ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...environment() },
          ...{ KILLED_AFTER: step, EVENTS_PER_FILE: String(eventsPerFile) },
        },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const [, signal] = (await once(killed, 'exit')) as [number | null, string | null];
      expect([step, signal]).toEqual([step, 'SIGKILL']);
      await waitFor(async () => {
        const { rows } = await pool().query('select from pg_locks where objid = $1', [archiveLock]);
        return rows.length === 0;
      }, 'PostgreSQL to release the lock of the killed process');
      const known = idsOf([...(await journalEvents()), ...(await archivedEvents())]);
      expect([step, all.filter(({ event_id }) => !known.has(event_id))]).toEqual([step, []]);
      await rebuild(pool(), { readArchive, restarts: true });
      expect([step, await projectionContents(pool())]).toEqual([step, contents]);
    }
    await archive();
    await collapse();
    const { rows: ranges } = await pool().query<{ first: number; last: number; emptied: boolean }>(
      `select first_position as first, last_position as last, emptied_at is not null as emptied
       from exportd.journal_archives order by first_position`,
    );
    expect(ranges.every(({ emptied }) => emptied)).toBe(true);
    // Without a gap.
    expect(ranges.map(({ first }) => first - 1)).toEqual([0, ...ranges.slice(0, -1).map(({ last }) => last)]);
    await rebuild(pool(), { readArchive, restarts: true });
    expect(await projectionContents(pool())).toBe(contents);
  });

  it('deletes what an interrupted call has archived, although no further file is full', async () => {
    await collapse();
    const all = await journalEvents();
    const { rows } = await pool().query<{ events: number }>(
      `select count(*) - 1 as events from exportd.journal_events
       where global_position > (select coalesce(max(last_position), 0) from exportd.journal_archives)`,
    );
    // The newest event stays.
    const whole = { historyMs: 0, eventsPerFile: rows[0]?.events ?? 0 };
    const stopped = new Error('stopped');
    const onStep = (step: ArchiveStep): void => {
      if (step === 'recorded') throw stopped;
    };
    await expect(archiveJournal(pool(), store, { ...whole, onStep }, never)).rejects.toBe(stopped);
    expect(await journalEvents()).toEqual(all);

    expect(await archiveJournal(pool(), store, whole, never)).toEqual({ ranges: 0, events: 0 });
    const { rows: left } = await pool().query(
      'select from exportd.journal_archives where emptied_at is null',
    );
    expect(left).toEqual([]);
    const ids = idsOf(await journalEvents());
    expect(ids.size).toBeLessThan(all.length);
    const { rows: digests } = await pool().query<{ count: number }>(
      `select count(*) as count from exportd.journal_events where event_type = 'HistoryCollapsed'
         and global_position <= (select max(last_position) from exportd.journal_archives)`,
    );
    expect(digests).toEqual([{ count: 0 }]);
  });

  it('deletes nothing that was not stored as it was sent', async () => {
    await collapse();
    const all = await journalEvents();
    const lossy: ArchiveStore = { ...store, read: async (name) => (await store.read(name)).subarray(1) };
    await expect(archive(lossy)).rejects.toMatchObject({ type: 'ArchiveDamaged' });
    expect(await journalEvents()).toEqual(all);
    await expect(
      pool()
        .query(`delete from exportd.journal_events where event_type = 'HistoryCollapsed' and global_position > (
        select coalesce(max(last_position), 0) from exportd.journal_archives)`),
    ).rejects.toThrow(/append-only/);
  });

  it('leaves the read models alone when a file is damaged or missing', async () => {
    await collapse();
    await archive();
    const contents = await projectionContents(pool());
    const name = await newestName('parquet');
    const target = { Bucket: bucket.bucket, Key: `archive/${name}` };
    const bytes = await store.read(name);
    await bucket.client.send(new PutObjectCommand({ ...target, Body: bytes.subarray(0, -1) }));
    await expect(rebuild(pool(), { readArchive, restarts: true })).rejects.toMatchObject({
      type: 'ArchiveDamaged',
    });
    expect(await findArchiveProblem(pool(), settings)).toMatch(/SHA-256 differs/);
    expect(await projectionContents(pool())).toBe(contents);
    await bucket.client.send(new PutObjectCommand({ ...target, Body: bytes }));
    await rebuild(pool(), { readArchive, restarts: true });
    expect(await projectionContents(pool())).toBe(contents);
  });

  it('does not hide events from a rebuild that began before', async () => {
    await collapse();
    const contents = await projectionContents(pool());
    let archived: Promise<unknown> | undefined;
    const onProgress = (): void => {
      archived ??= archive().then(collapse);
    };
    const build = buildProjections(pool(), { restarts: true, eventsPerBatch: 3, readArchive, onProgress });
    await build;
    await archived;
    await switchProjections(pool(), { readArchive });
    expect(await projectionContents(pool())).toBe(contents);
  });
});
