import { describe, expect, it } from '@jest/globals';
import { expirationOf, isExpired } from '../../src/domain/batch_export.ts';

const written_at = '2026-01-01T10:00:00.000Z';

describe('an object expires', () => {
  it.each([
    [null, null, null],
    ['2026-02-01T00:00:00.000Z', null, '2026-02-01T00:00:00.000Z'],
    [null, 10, '2026-01-11T10:00:00.000Z'],
    ['2026-02-01T00:00:00.000Z', 10, '2026-01-11T10:00:00.000Z'],
    ['2026-01-05T00:00:00.000Z', 10, '2026-01-05T00:00:00.000Z'],
  ])('by its rule (%s) or the retention of the export (%s days): %s', (expires_at, days, time) => {
    expect(expirationOf({ expires_at, written_at }, days)?.toISOString() ?? null).toBe(time);
  });

  it('at that time', () => {
    const at = (now: string) => isExpired({ expires_at: null, written_at }, 1, new Date(now));
    expect([at('2026-01-02T09:59:59.999Z'), at('2026-01-02T10:00:00.000Z')]).toEqual([false, true]);
  });
});
