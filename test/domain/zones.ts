import fc from 'fast-check';

/** Zones with unusual rules: half-hour and quarter-hour offsets, DST of 30 minutes or at midnight, skipped days. */
const unusualZones = [
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

/** Any time zone of the runtime; unusual ones more often. */
export const anyTimeZone: fc.Arbitrary<string> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom<string>(...unusualZones) },
  { weight: 1, arbitrary: fc.constantFrom<string>('UTC', ...Intl.supportedValuesOf('timeZone')) },
);

/** Instants of large offset changes, and of changes at an hour at which a day can start. */
const transitions = [
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

/** Any instant between 1990 and 2040; instants near an offset change more often. */
export const anyInstant: fc.Arbitrary<Date> = fc.oneof(
  fc.date({ min: new Date('1990-01-01'), max: new Date('2040-01-01'), noInvalidDate: true }),
  fc
    .tuple(fc.constantFrom(...transitions), fc.integer({ min: -3 * dayMs, max: 3 * dayMs }))
    .map(([transition, away]) => new Date(transition + away)),
);
