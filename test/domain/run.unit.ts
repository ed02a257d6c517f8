import { describe, expect, it } from '@jest/globals';
import { noFiles } from '../../src/domain/exported_files.ts';
import {
  attemptOf,
  decideContinuation,
  progressForRetry,
  requireAttempt,
  runDecider,
  withBase,
} from '../../src/domain/run.ts';
import { type ExistingRun, filesOf, isFailureDue, withFailure } from '../../src/domain/run_state.ts';
import { given } from './decider_specification.ts';
import { fingerprintOf } from './fingerprints.ts';
import { outageRetryDelaySeconds } from '../../src/domain/retry_delay.ts';
import type { RunEvent } from '../../src/domain/run_events.ts';
import { runSpecOf } from './run_spec.ts';

describe('a run of a split interval', () => {
  const keyAt = (minute: number) => ({ inserted_at: `2026-11-01T10:0${minute}:00.000000Z`, id: 'row' });
  const started: RunEvent = {
    type: 'RunCreated',
    data: runSpecOf(),
  };
  const counted: RunEvent = {
    type: 'RunCounted',
    data: {
      records_total_count: 30,
      fingerprint: fingerprintOf(30),
      settled: true,
      split_keys: [keyAt(1), keyAt(2)],
    },
  };
  const reserved = (generation: number): RunEvent => ({
    type: 'RunGenerationReserved',
    data: { generation },
  });
  const fileOf = (range: number, minute: number, expires_at: string | null = null): RunEvent => ({
    type: 'RunFileCompleted',
    data: {
      generation: 1,
      range,
      file: {
        key: `${range}.${minute}`,
        rows: 1,
        fingerprint: fingerprintOf(1),
        expires_at,
        rejected: 0,
        bytes: 1,
        crc32: '0',
        first: null,
        last: keyAt(minute),
      },
    },
  });
  const uploadOf = (range: number, file: number): RunEvent => ({
    type: 'RunUploadCreated',
    data: {
      generation: 1,
      range,
      file,
      key: `${range}.${file}`,
      upload_id: `u${range}.${file}`,
      upload_token: 'token',
      part_bytes: null,
      encoder: 'test/1',
    },
  });

  const runAfter = (events: readonly RunEvent[]): ExistingRun => {
    const { state } = given(runDecider, [started, counted, reserved(1), ...events]);
    if (state.status === 'Absent') throw new Error('The run should exist.');
    return state;
  };

  it('has ranges before, between and after the split keys', () => {
    expect(runAfter([]).ranges.map(({ after, until }) => [after, until])).toEqual([
      [null, keyAt(1)],
      [keyAt(1), keyAt(2)],
      [keyAt(2), null],
    ]);
  });

  it('counts attempts of each range separately', () => {
    const earlier = runAfter([
      { type: 'RunExportStarted', data: { range: 1 } },
      { type: 'RunAttemptStarted', data: { range: 0 } },
    ]);
    const first = attemptOf(earlier, 1);
    const later = runAfter([
      { type: 'RunExportStarted', data: { range: 1 } },
      { type: 'RunAttemptStarted', data: { range: 0 } },
      { type: 'RunAttemptStarted', data: { range: 0 } },
    ]);
    expect(requireAttempt(later, first).range).toBe(later.ranges[1]);
    expect(() => requireAttempt(later, attemptOf(earlier, 0))).toThrow('Another attempt');
  });

  it('adds its files up in key order, whichever range finishes first', () => {
    const run = runAfter([
      uploadOf(2, 0),
      uploadOf(0, 0),
      fileOf(2, 3, '2026-12-02T00:00:00.000Z'),
      fileOf(0, 0),
      fileOf(1, 1, '2026-12-01T00:00:00.000Z'),
    ]);
    expect(filesOf(run)).toEqual({
      count: 3,
      rows: 3,
      bytes: 3,
      rejected: 0,
      fingerprint: fingerprintOf(3),
      last: keyAt(3),
      expires_at: '2026-12-01T00:00:00.000Z',
    });
  });

  it('never reuses the number of a file within a range', () => {
    const run = runAfter([uploadOf(1, 0), uploadOf(1, 1)]);
    expect(run.ranges.map(({ next_file }) => next_file)).toEqual([0, 2, 0]);
  });

  it('drops files but keeps attempts and split keys with the next generation', () => {
    const run = runAfter([
      { type: 'RunExportStarted', data: { range: 1 } },
      uploadOf(1, 0),
      fileOf(1, 1),
      { type: 'RunRangeFinished', data: { generation: 1, range: 1 } },
      { type: 'RunGenerationReserved', data: { generation: 2, late_rows: true } },
    ]);
    expect(run).toMatchObject({ generation: 2, late_generations: 1, encoder: null });
    expect(run.ranges[1]).toEqual({
      after: keyAt(1),
      until: keyAt(2),
      attempt: 1,
      upload: null,
      files: noFiles,
      next_file: 0,
      finished: false,
    });
  });

  it('passes its progress to the run that continues it', () => {
    const run = runAfter([uploadOf(1, 0), fileOf(1, 1), uploadOf(2, 0)]);
    const { created: event } = decideContinuation(run, { run_id: 'a', next_run_id: 'b', cursor: 'c' });
    const next = given(runDecider, [event]).state;
    expect(next).toMatchObject({ status: 'Starting', ranges: run.ranges, records_total_count: 30 });
  });

  it('adds late rows to the files of a manifest: one range, one total, and nothing for a retry', () => {
    const base = {
      files: { ...noFiles, count: 2, rows: 20, bytes: 20, fingerprint: fingerprintOf(20) },
      rejected_file: null,
      late_rows: 1,
      has_more: false,
      listed_by: 'run',
    };
    const checked: RunEvent = {
      type: 'RunReplacementChecked',
      data: {
        replaced: { run_id: 'replaced', generation: 4 },
        outcome: 'late_rows_added',
        missing_rows: 2,
        bucket_rows: 20,
        source_rows: 19,
        source: null,
        generation: null,
        base,
        late_keys: [keyAt(5)],
      },
    };
    const run = runAfter([fileOf(0, 0), checked]);
    expect(run).toMatchObject({
      generation: 0,
      records_total_count: 1,
      ranges: [{ after: null, until: null }],
    });
    expect(run.replacement).not.toHaveProperty('late_keys');
    const exported = runAfter([checked, reserved(1), fileOf(0, 5)]);
    expect(filesOf(exported)).toMatchObject({ count: 1, rows: 1 });
    expect(filesOf(withBase(exported))).toMatchObject({ count: 3, rows: 21 });
    expect(progressForRetry(exported, { run_id: 'a', model: 'events', config_version: 1 })).toBeUndefined();
    const completed = runAfter([
      checked,
      reserved(1),
      fileOf(0, 5),
      { type: 'RunCompleted', data: { manifest_key: 'key', expires_at: null, covers: null } },
    ]);
    expect(filesOf(completed)).toMatchObject({ count: 3, rows: 21 });
    expect(filesOf(withBase(completed))).toEqual(filesOf(completed));
  });

  it('is resumed by an automatic retry once it has an upload or a file', () => {
    const definition = { run_id: 'a', model: 'events', config_version: 1 } as const;
    expect(progressForRetry(runAfter([]), definition)).toBeUndefined();
    const run = runAfter([uploadOf(2, 0)]);
    expect(progressForRetry(run, definition)).toMatchObject({
      ranges: run.ranges,
      records_total_count: null,
    });
    expect(progressForRetry(run, { ...definition, config_version: 2 })).toBeUndefined();
  });
});

describe('the retry of a run whose destination did not respond', () => {
  const policy = { initialSeconds: 60, maxSeconds: 3_600, maxRetries: 3 };

  it.each([
    [0, policy, 60],
    [1, policy, 120],
    [3, policy, 240],
    [9, policy, 240],
    [0, { ...policy, maxRetries: 0 }, null],
  ])('follows whatever its number, unless there are no retries (%s)', (number, of, seconds) => {
    expect(outageRetryDelaySeconds(number, of)).toBe(seconds);
  });
});

describe('a failed attempt', () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 10, 1, 10, minute));
  const failures = withFailure({}, 'SlowDown', at(0).toISOString());

  it.each([
    ['of a type for the first time', 'InvalidPart', 1, true, true],
    ['minutes after another of its type', 'SlowDown', 4, true, false],
    ['some minutes later', 'SlowDown', 5, true, true],
    ['after progress', 'SlowDown', 1, false, true],
  ])('is recorded or not %s', (_, type, minute, isShown, due) => {
    expect(isFailureDue(failures, type, { isShown, now: at(minute) })).toBe(due);
  });

  it('is counted by type', () => {
    expect(withFailure(failures, 'SlowDown', at(6).toISOString())).toEqual({
      SlowDown: { recorded: 2, recorded_at: at(6).toISOString() },
    });
  });
});
