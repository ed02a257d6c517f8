import { describe, expect, it, jest } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { operatorFaultDetails } from '../../src/contract/failure_details.ts';
import { circuitRetryDelayMs, describeOpenCircuit } from '../../src/domain/circuit.ts';
import type { Pool } from '../../src/journal/database.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { createFaultPacing } from '../../src/failures/fault_pacing.ts';
import { createOutages } from '../../src/failures/outages.ts';

const fault = { type: 'UndefinedTable', message: 'The source lacks a relation.' };
const otherFault = { type: 'InvalidAuthorization', message: 'The database rejected the login.' };
const interval = 10_000;

/** A pacing whose clock stands still until `pass`. */
function createTestPacing() {
  let now = 0;
  const pacing = createFaultPacing(
    { EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: interval, EXPORTD_ACTIVITY_RETRY_INITIAL: 1_000 },
    { now: () => now, random: () => 0.999 },
  );
  return {
    ...pacing,
    failed: (run: string, of: typeof fault, attempt = 1) => pacing.failed(run, of, attempt),
    pass: (milliseconds: number) => (now += milliseconds),
  };
}

describe('the pacing of runs that wait for an operator', () => {
  it('lets one waiting run try at a time', () => {
    const pacing = createTestPacing();
    for (const run of ['a', 'b', 'c']) pacing.failed(run, fault);
    expect(['a', 'b', 'c', 'new'].map((run) => pacing.admit(run)?.fault)).toEqual([
      fault,
      fault,
      fault,
      undefined,
    ]);
    pacing.pass(interval);
    expect(['b', 'a', 'c'].map((run) => pacing.admit(run)?.fault)).toEqual([undefined, fault, fault]);
  });

  it('bounds the rate, whatever the number of runs', () => {
    const pacing = createTestPacing();
    const runs = Array.from({ length: 500 }, (_, index) => `run ${index}`);
    for (const run of runs) pacing.failed(run, fault);
    let tried = 0;
    for (let second = 0; second < 600; second += 1) {
      pacing.pass(1_000);
      for (const run of runs) {
        if (pacing.admit(run)) continue;
        tried += 1;
        pacing.failed(run, fault);
      }
    }
    expect(tried).toBeGreaterThan(30);
    expect(tried).toBeLessThanOrEqual(600_000 / interval + 5);
  });

  it('brings every run back within a minute', () => {
    const pacing = createTestPacing();
    for (let attempt = 0; attempt < 50; attempt += 1) {
      for (let run = 0; run < 100; run += 1)
        expect(pacing.failed(`run ${run}`, fault).wait_ms).toBeLessThanOrEqual(2 * interval);
      pacing.pass(interval);
    }
  });

  it('waits no longer when the clock of the machine is set back', () => {
    const before = Date.now();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(before);
    const pacing = createFaultPacing({
      EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: interval,
      EXPORTD_ACTIVITY_RETRY_INITIAL: 1_000,
    });
    pacing.failed('a', fault, 1);
    clock.mockReturnValue(before - 6 * 3_600_000);
    expect(pacing.admit('a')?.wait_ms).toBeLessThanOrEqual(2 * interval);
    clock.mockRestore();
  });

  it('lets all runs try once one has succeeded', () => {
    const pacing = createTestPacing();
    for (const run of ['a', 'b']) pacing.failed(run, fault);
    pacing.failed('c', otherFault);
    pacing.pass(interval);
    expect(pacing.admit('a')).toBeUndefined();
    expect(pacing.succeeded('a')).toEqual(fault);
    expect(pacing.admit('b')).toBeUndefined();
    pacing.failed('c', otherFault);
    expect(pacing.admit('c')?.fault).toEqual(otherFault);
  });

  it('knows nothing of the fault of a run that failed for another reason', () => {
    const pacing = createTestPacing();
    for (const run of ['a', 'b']) pacing.failed(run, fault);
    expect(pacing.leave('a')).toEqual(fault);
    expect(pacing.admit('a')).toBeUndefined();
    expect(pacing.admit('b')?.fault).toEqual(fault);
  });

  it('lets every run try again soon where another worker may have the key', () => {
    const pacing = createTestPacing();
    const noKey = { type: 'SecretUnreadable', message: 'The key "a" is missing.' };
    for (let run = 0; run < 50; run += 1) pacing.failed(`run ${run}`, noKey);
    expect(pacing.failed('a', noKey).wait_ms).toBeLessThanOrEqual(2_000);
    expect(pacing.admit('a')).toBeUndefined();
    expect(pacing.failed('a', noKey, 2).wait_ms).toBeGreaterThan(2_000);
    expect(pacing.failed('a', noKey, 99).wait_ms).toBeLessThanOrEqual(2 * interval);
  });
});

describe('an attempt of a run that waits for its destination and for the operator', () => {
  const attempt = { runId: 'run', number: 2, isLocal: false, needsDestination: true };
  const broken = ApplicationFailure.create({ ...fault, details: [operatorFaultDetails] });
  const openCircuit = {
    error: 'No response.',
    opened_at: '2026-01-01T10:00:00Z',
    next_probe_at: '2026-01-01T11:00:00Z',
    open_for_ms: 60_000,
    next_probe_in_ms: 60_000,
    responded_ms_ago: null,
    probing_for_ms: null,
  };

  it.each([
    ['its circuit first', {}, { type: 'DestinationUnavailable', nonRetryable: false }],
    [
      'the fault alone in a step without requests',
      { needsDestination: false },
      { ...fault, nonRetryable: false },
    ],
    [
      'the fault, and fails for good where it is local',
      { needsDestination: false, isLocal: true },
      { ...fault, nonRetryable: true, details: [operatorFaultDetails] },
    ],
  ])('waits for %s', async (_, more, expected) => {
    const pool = { query: () => Promise.resolve({ rows: [openCircuit] }) } as unknown as Pool;
    // Longer than the test takes.
    const intervals = {
      EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: 3_600_000,
      EXPORTD_ACTIVITY_RETRY_INITIAL: 3_600_000,
    };
    const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
    const outages = createOutages(pool, { ...s3Settings(), ...intervals }, logger);
    await expect(outages.attempt(attempt, () => Promise.reject(broken))).rejects.toMatchObject(fault);
    const { signal } = new AbortController();
    const admitted = outages.circuits.admit('bucket', () => Promise.resolve(), { signal, runId: 'run' });
    await expect(admitted).rejects.toMatchObject({ type: 'DestinationUnavailable' });
    const started: string[] = [];
    const waiting = outages.attempt({ ...attempt, ...more }, () => Promise.resolve(started.push('work')));
    await expect(waiting).rejects.toMatchObject(expected);
    expect(started).toEqual([]);
  });
});

describe('an attempt at an unavailable destination', () => {
  it.each([
    ['after the next probe', { nextProbeInMs: 1_000, openForMs: 0 }, [1_000, 1_200]],
    ['soon, while the probe that is due is under way', { nextProbeInMs: -500, openForMs: 2_000 }, [0, 2_000]],
    [
      'at different times during a long outage',
      { nextProbeInMs: 5_000, openForMs: 3_600_000 },
      [5_000, 15_000],
    ],
    ['within half a minute', { nextProbeInMs: 30_000, openForMs: 3_600_000 }, [20_000, 30_000]],
  ])('returns %s', (_, circuit, bounds) => {
    expect([0, 1].map((random) => circuitRetryDelayMs(circuit, random))).toEqual(bounds);
  });

  it('says what happened, since when, and when it is tried next', () => {
    const circuit = {
      error: 'The S3 server did not respond.',
      opened_at: '2026-11-23T10:00:00.000Z',
      next_probe_at: '2026-11-23T10:00:30.000Z',
    };
    expect(describeOpenCircuit(circuit)).toBe(
      'The S3 server did not respond, since 2026-11-23T10:00:00.000Z, next probe 2026-11-23T10:00:30.000Z.',
    );
  });
});
