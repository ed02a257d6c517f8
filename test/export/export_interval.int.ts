import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { CancelledFailure } from '@temporalio/common';
import { bounds } from '../../src/config/bounds.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import type { OpenDestination } from '../../src/destination/open_destination.ts';
import { attemptOf, runDecider } from '../../src/domain/run.ts';
import { rowsOfFingerprint } from '../../src/domain/fingerprint.ts';
import { finishedOf, sourceAfter } from '../../src/domain/run_state.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { errorResponse, warningsOf } from './stores.ts';
import { readRun } from '../decisions/read_runs.ts';

describe('attempts', () => {
  let harness: ExportHarness;
  const eventCount = 3_000;
  beforeAll(async () => {
    harness = await createExportHarness();
    await harness.insertEvents(eventCount);
  });
  afterAll(() => harness.close());

  /** Opens a destination that calls `onPart` instead of sending a part. */
  const withPartHook =
    (onPart: () => Promise<never>): OpenDestination =>
    async (spec, onError) => {
      const destination = await harness.openDestination(spec, onError);
      return {
        ...destination,
        createUpload: async (...input) => ({
          ...(await destination.createUpload(...input)),
          putPart: onPart,
        }),
      };
    };

  const endAsCancelled = (runId: string): Promise<void> =>
    harness.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, runId);
      await stream.append('ended', [{ type: 'RunCancelled', data: { reason: 'a test' } }]);
    });

  describe('exporting an interval', () => {
    it('into more files than a manifest lists fails and names the field', async () => {
      const { run_id } = await harness.createRun({ config: { max_file_size_mb: 1, compression: null } });
      const recorder: typeof harness.recorder = {
        ...harness.recorder,
        // As if the first file were the last one that fits.
        recordFile: async (...input) => {
          const run = await harness.recorder.recordFile(...input);
          const full = ({ files, ...range }: (typeof run.ranges)[number]) => ({
            ...range,
            files: { ...files, count: bounds.manifestFiles.max },
          });
          return { ...run, ranges: run.ranges.map(full) };
        },
      };
      await expect(harness.attempt({ recorder }).exportInterval({ run_id })).rejects.toMatchObject({
        type: 'TooManyFiles',
        nonRetryable: true,
        message: expect.stringMatching(/10,000 files.*max_file_size_mb/),
      });
    });

    it.each([null, 'gzip'])(
      'writes every row once, in order, in parts, and then the manifest (%s)',
      async (compression) => {
        const { run_id, batchExportId } = await harness.createRun({ config: { compression } });
        const attempt = harness.attempt();
        const exported = await attempt.exportInterval({ run_id });
        expect(exported).toMatchObject({ generation: 1, rows: eventCount, source_rows: eventCount });
        expect(await attempt.exportInterval({ run_id })).toEqual(exported);
        const published = await attempt.publishManifest({ run_id });
        expect(await attempt.publishManifest({ run_id })).toEqual(published);
        // As after a lost reply.
        expect(await attempt.exportInterval({ run_id, publishes: true })).toEqual({
          ...exported,
          published: true,
        });

        const manifest = await harness.reader.manifestAt(published.manifest_key);
        expect(manifest).toMatchObject({ run_id, generation: 1, rows: eventCount, settled: true });
        expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
        expect(await harness.reader.keysWithPrefix(batchExportId)).toHaveLength(2);
        const types = await harness.reader.eventTypes(run_id);
        expect(types.filter((type) => type === 'RunPartPlanned').length).toBeGreaterThan(1);
        expect(types.at(-1)).toBe('RunCompleted');
        expect(attempt.heartbeats.length).toBeGreaterThan(0);
      },
    );

    it('writes only a manifest if there are no rows', async () => {
      const { run_id, batchExportId } = await harness.createRun({ model: 'persons' });
      const attempt = harness.attempt();
      expect(await attempt.exportInterval({ run_id })).toMatchObject({ rows: 0, bytes: 0 });
      const { manifest_key } = await attempt.publishManifest({ run_id });
      expect(await harness.reader.manifestAt(manifest_key)).toMatchObject({
        rows: 0,
        files: [],
        encoder: 'none',
      });
      expect(await harness.reader.keysWithPrefix(batchExportId)).toEqual([manifest_key]);
    });

    it('again writes the next generation beside the old one, which stays complete', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      const attempt = harness.attempt();
      await attempt.exportInterval({ run_id });
      const { manifest_key } = await attempt.publishManifest({ run_id });
      const before = await harness.reader.manifestAt(manifest_key);

      const again = await harness.createRun({ batchExportId });
      expect(await attempt.exportInterval(again)).toMatchObject({ generation: 2 });
      expect(await harness.reader.manifestAt(manifest_key)).toEqual(before);
      await attempt.publishManifest(again);
      const after = await harness.reader.manifestAt(manifest_key);
      expect(after).toMatchObject({ generation: 2, run_id: again.run_id });
      expect(after.files[0]?.key).toMatch(/-g2\.jsonl$/);
      expect(await harness.reader.uuidsIn(after)).toEqual(await harness.reader.uuidsIn(before));
    });
  });

  describe('a failing attempt', () => {
    it('is followed by one that resumes its file and leaves nothing else', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      const killed = harness.attempt({
        openDestination: withPartHook(() => Promise.reject(new Error('a row of data'))),
      });
      await expect(killed.exportInterval({ run_id })).rejects.toMatchObject({
        type: 'UnexpectedError',
        nonRetryable: false,
        message: expect.not.stringContaining('a row'),
      });
      const attempt = harness.attempt();
      expect(await attempt.exportInterval({ run_id })).toMatchObject({ generation: 1, rows: eventCount });
      const { manifest_key } = await attempt.publishManifest({ run_id });
      expect(await harness.reader.uuidsIn(await harness.reader.manifestAt(manifest_key))).toEqual(
        await harness.reader.sourceUuids(),
      );
      expect(await harness.reader.keysWithPrefix(batchExportId)).toHaveLength(2);
      expect(await harness.reader.openUploads()).toEqual([]);
    });

    it('of another encoder version has its upload aborted by the next', async () => {
      const { run_id } = await harness.createRun();
      const run = await harness.recorder.reserveGeneration(run_id);
      const { spec: spec, generation } = run;
      const destination = await harness.openDestination(spec, () => undefined);
      const key = destination.fileKey(spec, { generation, range: null, file: null, mark: null }, 'jsonl');
      const upload = await destination.createUpload(
        { key, contentType: 'text/plain', upload_token: 'token' },
        new AbortController().signal,
      );
      const attempt = attemptOf(run, 0);
      await harness.recorder.recordUpload(run_id, attempt, { ...upload, file: 0, encoder: 'jsonlines/0' });
      destination.close();
      expect(await harness.reader.openUploads()).toHaveLength(1);
      expect(await harness.attempt().exportInterval({ run_id })).toMatchObject({ generation: 2 });
      expect(await harness.reader.openUploads()).toEqual([]);
    });

    it('cannot finish as a zombie of its successor', async () => {
      const { run_id } = await harness.createRun();
      const reached = Promise.withResolvers<undefined>();
      const resume = Promise.withResolvers<never>();
      const zombie = harness
        .attempt({
          openDestination: withPartHook(() => {
            reached.resolve(undefined);
            return resume.promise;
          }),
        })
        .exportInterval({ run_id });
      await reached.promise;
      const exported = await harness.attempt().exportInterval({ run_id });
      resume.reject(new Error('woken up'));
      await expect(zombie).rejects.toMatchObject({ name: 'ApplicationFailure' });
      expect(await harness.recorder.read(run_id)).toMatchObject({
        generation: 1,
        phase: { finished: { source_rows: eventCount } },
      });
      expect(exported).toMatchObject({ generation: 1, rows: eventCount });
    });

    it.each([
      ['aborts its upload if its run was cancelled', true, 'CANCELLED', 0],
      ['leaves its parts to the next if another range failed', false, 'CANCELLED', 1],
      ['leaves its parts to the next if its worker shuts down', false, 'WORKER_SHUTDOWN', 1],
    ])('%s', async (_, runIsCancelled, cause, uploads) => {
      const { run_id } = await harness.createRun();
      const cancel = new AbortController();
      const reason = new CancelledFailure(cause);
      const openDestination = withPartHook(async () => {
        if (runIsCancelled) await endAsCancelled(run_id);
        cancel.abort(reason);
        throw reason;
      });
      await expect(
        harness.attempt({ signal: cancel.signal, openDestination }).exportInterval({ run_id }),
        // Either the journal rejects the next step of the cancelled run, or the cancellation arrives first.
      ).rejects.toThrow();
      expect(await harness.reader.openUploads()).toHaveLength(uploads);
      if (uploads > 0) await harness.attempt().exportInterval({ run_id });
      expect(await harness.reader.openUploads()).toEqual([]);
    });

    it('is not retried with wrong credentials and names what to check', async () => {
      const { run_id } = await harness.createRun({ config: { aws_access_key_id: 'nobody' } });
      await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject({
        type: 'InvalidAccessKeyId',
        nonRetryable: true,
        message: expect.stringContaining('aws_access_key_id'),
      });
    });

    it('writes nothing after the run has ended', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      await endAsCancelled(run_id);
      const attempt = harness.attempt();
      for (const activity of [attempt.exportInterval, attempt.publishManifest])
        await expect(activity({ run_id })).rejects.toMatchObject({ type: 'RunEnded', nonRetryable: true });
      expect(await harness.reader.keysWithPrefix(batchExportId)).toEqual([]);
    });
  });
});

describe('failed attempts', () => {
  let harness: ExportHarness;
  let proxy: S3Proxy;
  let stopIntercepting: (() => void) | undefined;
  beforeAll(async () => {
    harness = await createExportHarness();
    proxy = await createS3Proxy(harness.bucket.endpoint);
    await harness.insertEvents(300);
  });
  afterEach(() => stopIntercepting?.());
  afterAll(async () => {
    await proxy.close();
    await harness.close();
  });

  const latestErrorOf = async (runId: string): Promise<string | null> =>
    (await readRun(harness.database.pool, runId)).latest_error;

  /** The lines of the export's log that say what the run is retried after. */
  const delaysOf = async (runId: string): Promise<string[]> =>
    (await warningsOf(harness, runId)).filter((message) => message.includes(' is delayed: '));

  /** Temporal's description of an attempt whose retries end at noon. */
  const infoOf = (attempt: number) => ({
    attempt,
    scheduledTimestampMs: Date.parse('2026-11-23T11:00:00Z'),
    scheduleToCloseTimeoutMs: 3_600_000,
  });

  const failing = (type: string, transient: boolean) => ({
    openDestination: () =>
      Promise.reject(new DestinationError(type, `The bucket says ${type}.`, { transient })),
  });

  /** Bytes of the rows of a run in the control database, by table. */
  const storedBytesOf = async (runId: string): Promise<Record<string, number>> => {
    const { rows } = await harness.journal.pool.query<{ name: string; bytes: number }>(
      `select 'events' as name, sum(pg_column_size(stored.*))::int as bytes
       from exportd.journal_events stored where stream_id = $1
       union all select 'state', sum(pg_column_size(stored.*))::int
       from exportd.stream_states stored where stream_id = $1
       union all select 'objects', sum(pg_column_size(stored.*))::int
       from exportd.destination_objects stored where run_id = $1
       union all select 'run', sum(pg_column_size(stored.*))::int
       from exportd.batch_export_runs stored where id = $1
       union all select 'interval', sum(pg_column_size(stored.*))::int
       from exportd.intervals stored where run_id = $1`,
      [runId],
    );
    return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]));
  };

  it('leaves about ten kilobytes of a run with rows in every bucket of its fingerprint', async () => {
    const { run_id } = await harness.createRun();
    await harness.attempt().exportInterval({ run_id });
    await harness.attempt().publishManifest({ run_id });
    const bytes = await storedBytesOf(run_id);
    expect(Object.values(bytes).reduce((sum, of) => sum + of, 0)).toBeLessThan(11_100);
    expect(bytes.state).toBeLessThan(3_000);
    const run = await harness.recorder.read(run_id);
    expect(rowsOfFingerprint(sourceAfter(run))).toBe(300);
    expect([run.source_fingerprint, run.read_since, finishedOf(run)?.fingerprint]).toEqual([
      null,
      null,
      null,
    ]);
  });

  describe('a run whose bucket keeps refusing a request', () => {
    it('shows the refusal while it waits, and nothing once it makes progress', async () => {
      const { run_id } = await harness.createRun({ config: { endpoint_url: proxy.endpoint } });
      stopIntercepting = proxy.intercept({
        before: ({ operation }) => (operation === 'HeadObject' ? undefined : errorResponse(503, 'SlowDown')),
      });
      const exporting = harness.attempt({ info: infoOf(1) }).exportInterval({ run_id });
      const latest_error = await waitFor(() => latestErrorOf(run_id), 'the run shows an error');
      expect(latest_error).toMatch(
        /^SlowDown: The S3 server rejected \w+ with SlowDown \(status 503\)\. The server says: No\. Retrying the export until 2026-11-23T12:00:00\.000Z\.$/,
      );
      stopIntercepting();
      expect(await exporting).toMatchObject({ finished: true, rows: 300 });
      expect(await latestErrorOf(run_id)).toBeNull();
      const [delay, ...more] = await delaysOf(run_id);
      expect([delay?.endsWith(latest_error), more]).toEqual([true, []]);
    });
  });

  describe('a run whose attempts keep failing', () => {
    it('shows the error from the second attempt on, logs it once, and again after progress', async () => {
      const { run_id } = await harness.createRun();
      const attemptAt = (number: number, type = 'SlowDown') =>
        harness.attempt({ ...failing(type, true), info: infoOf(number) }).exportInterval({ run_id });
      await expect(attemptAt(1)).rejects.toThrow('The bucket says SlowDown.');
      expect(await latestErrorOf(run_id)).toBeNull();
      for (const number of [2, 3]) await expect(attemptAt(number)).rejects.toThrow();
      const shown = 'SlowDown: The bucket says SlowDown. Retrying the export until 2026-11-23T12:00:00.000Z.';
      expect(await latestErrorOf(run_id)).toBe(shown);
      expect(await delaysOf(run_id)).toHaveLength(1);

      // Another error is shown at once, and then none for minutes.
      for (const number of [4, 5, 6]) await expect(attemptAt(number, `Other`)).rejects.toThrow();
      await expect(attemptAt(7)).rejects.toThrow();
      expect(await latestErrorOf(run_id)).toMatch(/^Other: /);
      expect(await delaysOf(run_id)).toHaveLength(2);

      await harness.attempt().exportInterval({ run_id });
      expect(await latestErrorOf(run_id)).toBeNull();
      const publishing = harness.attempt({ ...failing('SlowDown', true), info: infoOf(2) });
      await expect(publishing.publishManifest({ run_id })).rejects.toThrow();
      expect(await latestErrorOf(run_id)).toMatch(/^SlowDown: .* Retrying publishing the manifest until /);
      expect(await delaysOf(run_id)).toHaveLength(3);
      await harness.attempt().publishManifest({ run_id });
      expect(await latestErrorOf(run_id)).toBeNull();
    });

    it('shows no permanent error before it has ended', async () => {
      const { run_id } = await harness.createRun();
      const attempt = harness.attempt({ ...failing('NoSuchBucket', false), info: infoOf(2) });
      await expect(attempt.exportInterval({ run_id })).rejects.toThrow('The bucket says NoSuchBucket.');
      expect([await latestErrorOf(run_id), await delaysOf(run_id)]).toEqual([null, []]);
    });
  });
});
