import { describe, expect, it } from '@jest/globals';
import { circuitRetryDelayMs, describeOpenCircuit } from '../../src/domain/circuit.ts';

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
