import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseTime } from '../../src/dialect/compile/times/local_times.ts';
import { isTimeZone as isTimeZoneOfDialect } from '@exportd/dialect/types';
import { instantOfLocalTime, isTimeZone } from '../../src/domain/intervals.ts';

const zones = [
  'UTC',
  'America/New_York',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Asia/Tokyo',
];

/** The dialect imports nothing of exportd, but both must read times alike. */
describe('the dialect, which imports nothing of exportd, agrees with it', () => {
  it('on the instant of each local time', () => {
    const localTime = fc.date({
      min: new Date('1970-01-02'),
      max: new Date('2040-01-01'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(localTime, fc.constantFrom(...zones), (local, zone) => {
        const text = local.toISOString().slice(0, 19);
        const instant = instantOfLocalTime(Date.parse(`${text}Z`), zone);
        expect(parseTime(text, zone)).toBe(instant.toISOString().replace('.000Z', 'Z'));
      }),
    );
  });

  it.each([...zones, 'CST', 'EST', 'utc', '+05:00', 'Europe/Nowhere', ''])(
    'whether %p is a time zone',
    (name) => {
      expect(isTimeZoneOfDialect(name)).toBe(isTimeZone(name));
    },
  );
});
