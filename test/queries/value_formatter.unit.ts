import { describe, expect, it } from '@jest/globals';
import { DateTime } from 'luxon';
import { arrayOf, mapOf, scalarType, timeIn, tupleOf } from '@exportd/dialect/types';
import { valueFormatter } from '../../src/queries/value_formatter.ts';

const time = scalarType('datetime');
const berlin = 'Europe/Berlin';

describe('formatted values', () => {
  it.each([
    ['2026-11-21 16:00:00.5+00', '2026-11-21T17:00:00.500000+01:00'],
    ['2026-10-25 00:59:59+00', '2026-10-25T02:59:59+02:00'],
    ['2026-10-25 01:00:00+00', '2026-10-25T02:00:00+01:00'],
    ['0001-01-01 00:30:00+00', '0001-01-01T01:23:28+00:53'],
    ['9999-12-31 23:30:00+00', '10000-01-01T00:30:00+01:00'],
    ['0044-03-15 12:00:00+00 BC', '0044-03-15 12:00:00+00 BC'],
    ['infinity', 'infinity'],
  ])('%s is %s in Berlin', (text, formatted) => {
    expect(valueFormatter(time, berlin)(text)).toBe(formatted);
  });

  it.each(['Europe/Berlin', 'Australia/Lord_Howe', 'America/St_Johns'])(
    'have the offset of %s at any time',
    (zone) => {
      const read = valueFormatter(time, zone);
      for (let at = DateTime.utc(1890); at.year < 2040; at = at.plus({ days: 19, hours: 5, minutes: 7 })) {
        const local = at.setZone(zone);
        const offset = local.offset === 0 ? 'Z' : local.toFormat('ZZ');
        expect(read(at.toFormat("yyyy-MM-dd HH:mm:ss'+00'"))).toBe(
          `${local.toFormat("yyyy-MM-dd'T'HH:mm:ss")}${offset}`,
        );
      }
    },
  );

  it('have the new offset from the minute of a clock change', () => {
    const read = valueFormatter(time, 'America/St_Johns');
    expect(['2006-04-02 03:30:59+00', '2006-04-02 03:31:00+00'].map(read)).toEqual([
      '2006-04-02T00:00:59-03:30',
      '2006-04-02T01:01:00-02:30',
    ]);
  });

  it('use the zone of their type if it has one', () => {
    const tokyo = timeIn('Asia/Tokyo', false);
    expect(valueFormatter(tokyo, berlin)('2026-11-21 16:00:00+00')).toBe('2026-11-22T01:00:00+09:00');
    const both = valueFormatter(tupleOf([tokyo, time]), berlin);
    expect(both('["2026-11-21T16:00:00Z", "2026-11-21T16:00:00Z"]')).toEqual([
      '2026-11-22T01:00:00+09:00',
      '2026-11-21T17:00:00+01:00',
    ]);
  });

  it('use the zone inside arrays, tuples and maps too', () => {
    const [stored, formatted] = ['2026-09-02T22:29:23.300160Z', '2026-09-03T00:29:23.300160+02:00'];
    const json = (value: unknown): string => JSON.stringify(value);
    expect(valueFormatter(arrayOf(time), berlin)(json([stored, null]))).toEqual([formatted, null]);
    const pair = tupleOf([scalarType('string'), time]);
    expect(valueFormatter(arrayOf(pair), berlin)(json([[stored, stored]]))).toEqual([[stored, formatted]]);
    expect(valueFormatter(mapOf(time), berlin)(json({ first: stored }))).toEqual({ first: formatted });
    expect(valueFormatter(arrayOf(scalarType('string')), berlin)(json([stored]))).toEqual([stored]);
  });
});
