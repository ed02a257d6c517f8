import { describe, expect, it } from '@jest/globals';
import { type DeferredStep, DeferredSteps, firstAttemptStep } from '../../src/decisions/deferred_steps.ts';
import { fileStep } from '../../src/decisions/record_files.ts';
import { requireActive, runDecider } from '../../src/domain/run.ts';
import type { RunEvent } from '../../src/domain/run_events.ts';
import type { ExistingRun, RunState } from '../../src/domain/run_state.ts';
import type { LockedStream } from '../../src/journal/journal.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { runSpecOf } from '../domain/run_spec.ts';

const at = '2026-11-29T10:00:00.000Z';
const fingerprint = fingerprintOf(2);
const recorded = (event: RunEvent) => ({ ...event, recorded_at: at });
const created = recorded({
  type: 'RunCreated',
  data: runSpecOf({
    data_interval_start: '2026-11-29T08:00:00.000Z',
    data_interval_end: '2026-11-29T09:00:00.000Z',
  }),
});
const counted = recorded({
  type: 'RunCounted',
  data: { records_total_count: 2, fingerprint, settled: true, split_keys: [] },
});
const runAfter = (...events: readonly ReturnType<typeof recorded>[]): ExistingRun =>
  requireActive([created, counted, ...events].reduce<RunState>(runDecider.evolve, runDecider.initialState));
const others = { isFirstOfExport: false, mayReplace: false, nextGeneration: 3 };

/** A locked stream of a run, and the lines of its log. */
function streamOf(run: ExistingRun) {
  let state: RunState = run;
  const types: string[] = [];
  const lines: unknown[] = [];
  const stream: LockedStream<RunState, RunEvent> = {
    id: 'run',
    state: () => state,
    append: (_, events) => {
      types.push(...events.map(({ type }) => type));
      for (const event of events) state = runDecider.evolve(state, recorded(event));
      return Promise.resolve(events.map(recorded));
    },
  };
  const record = async (steps: readonly DeferredStep[]): Promise<void> => {
    for (const step of steps) await step(stream, { later: ({ values }) => lines.push(values.at(-1)) });
  };
  return { record, types, lines, state: () => state };
}

const file = {
  key: 'hour.jsonl',
  rows: 2,
  fingerprint,
  rejected: 0,
  bytes: 10,
  crc32: '00000000',
  first: null,
  last: null,
  expires_at: null,
};

describe('steps that are recorded with a later one', () => {
  it('lead to the run that they will have led to', async () => {
    const deferred = new DeferredSteps();
    const started = await deferred.add('run', runAfter(), firstAttemptStep(others));
    expect(started).toMatchObject({ status: 'Running', generation: 3, ranges: [{ attempt: 1 }] });
    const attempt = { generation: 3, range: 0, attempt: 1 };
    const more = { finishesRange: true, line: 'Wrote 2 rows.' };
    const written = await deferred.add('run', started, fileStep('run', attempt, file, more));
    expect(written.ranges).toMatchObject([{ finished: true, files: { count: 1, rows: 2 } }]);
    const stream = streamOf(runAfter());
    await stream.record(deferred.take());
    expect([stream.types, stream.lines]).toEqual([
      ['RunExportStarted', 'RunFileCompleted'],
      ['Wrote 2 rows.'],
    ]);
    expect(stream.state()).toEqual(written);
    expect(deferred.isEmpty).toBe(true);
  });

  it('of an attempt that another one has overtaken are rejected', async () => {
    const deferred = new DeferredSteps();
    await deferred.add('run', runAfter(), firstAttemptStep(others));
    const stream = streamOf(
      runAfter(recorded({ type: 'RunExportStarted', data: { range: 0, generation: 3 } })),
    );
    await expect(stream.record(deferred.take())).rejects.toMatchObject({ name: 'GenerationSuperseded' });
    expect(stream.types).toEqual([]);
  });

  it('of a run that was cancelled meanwhile are rejected', async () => {
    const deferred = new DeferredSteps();
    await deferred.add('run', runAfter(), firstAttemptStep(others));
    const cancelled = runDecider.evolve(
      runAfter(),
      recorded({ type: 'RunCancelled', data: { reason: 'No.' } }),
    ) as ExistingRun;
    await expect(streamOf(cancelled).record(deferred.take())).rejects.toMatchObject({ name: 'RunEnded' });
  });

  it('are not deferred where an attempt has recorded something', async () => {
    const begun = runAfter(recorded({ type: 'RunExportStarted', data: { range: 0, generation: 1 } }));
    await expect(new DeferredSteps().add('run', begun, firstAttemptStep(others))).rejects.toMatchObject({
      name: 'GenerationSuperseded',
    });
  });
});
