import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { DestinationError } from '../../src/destination/destination.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { errorResponse, warningsOf } from './stores.ts';

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

const latestErrorOf = async (runId: string): Promise<string | null> => {
  const { rows } = await harness.database.pool.query<{ latest_error: string | null }>(
    'select latest_error from exportd.batch_export_runs where id = $1',
    [runId],
  );
  return rows[0]?.latest_error ?? null;
};

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

describe('a run whose bucket keeps refusing a request', () => {
  it('shows the refusal while it waits, and nothing once it makes progress', async () => {
    const { run_id } = await harness.createRun({ config: { endpoint_url: proxy.endpoint } });
    stopIntercepting = proxy.intercept({
      before: ({ operation }) => (operation === 'HeadObject' ? undefined : errorResponse(503, 'SlowDown')),
    });
    const exporting = harness.attempt({ info: infoOf(1) }).exportInterval({ run_id });
    const latest_error = await waitFor(() => latestErrorOf(run_id), 'the run shows an error');
    expect(latest_error).toMatch(
      /^SlowDown: The S3 server rejected \w+ with SlowDown \(status 503\)\. Retrying the export until 2026-11-23T12:00:00\.000Z\.$/,
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
