import fc from 'fast-check';

/** Zones that are hard on calendars: half and quarter hours, DST of 30 minutes or at midnight, days that never were. */
const hardZones = [
  'America/Havana',
  'America/Nuuk',
  'America/St_Johns',
  'America/Santiago',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Antarctica/Troll',
  'Asia/Amman',
  'Asia/Beirut',
  'Asia/Gaza',
  'Asia/Kathmandu',
  'Asia/Pyongyang',
  'Asia/Tehran',
  'Australia/Adelaide',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'Europe/Dublin',
  'Pacific/Apia',
  'Pacific/Chatham',
  'Pacific/Fakaofo',
  'Pacific/Kiritimati',
  'Pacific/Kwajalein',
  'US/Eastern',
] as const;

/** Any time zone that the runtime knows, the hard ones more often. */
export const timeZone: fc.Arbitrary<string> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom<string>(...hardZones) },
  { weight: 1, arbitrary: fc.constantFrom<string>('UTC', ...Intl.supportedValuesOf('timeZone')) },
);

/** Instants when a zone changed its offset by a lot, or at an hour where a day may begin. */
const turns = [
  '1993-08-21T12:00:00Z',
  '1994-12-31T10:00:00Z',
  '2011-12-30T10:00:00Z',
  '2015-08-14T15:00:00Z',
  '2024-03-31T01:00:00Z',
  '2026-03-28T22:00:00Z',
  '2026-10-24T22:00:00Z',
  '2026-11-01T05:00:00Z',
].map((time) => Date.parse(time));

const dayMs = 24 * 60 * 60_000;

/** Any instant of a few decades, those near a change of an offset more often; whole milliseconds. */
export const instantOfHistory: fc.Arbitrary<Date> = fc.oneof(
  fc.date({ min: new Date('1990-01-01'), max: new Date('2040-01-01'), noInvalidDate: true }),
  fc
    .tuple(fc.constantFrom(...turns), fc.integer({ min: -3 * dayMs, max: 3 * dayMs }))
    .map(([turn, away]) => new Date(turn + away)),
);
