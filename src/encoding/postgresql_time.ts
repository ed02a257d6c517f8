const microsecondsPerDay = 86_400_000_000n;
const millisecondsPerDay = 86_400_000;
/** The Gregorian calendar repeats after 400 years. */
const daysPerCycle = 146_097n;
const infinity = 2n ** 63n - 1n;
const millisecondsTo2000 = Date.UTC(2000, 0, 1);

/**
 * Formats any binary timestamp (microseconds since 2000-01-01 UTC, int64) as PostgreSQL prints it in UTC: `infinity`,
 * `10000-01-01 00:00:00+00`, `0001-12-31 00:00:00.5+00 BC`.
 */
export function formatPostgresqlTime(block: Buffer, at: number): string {
  const time = block.readBigInt64BE(at);
  if (time === infinity) return 'infinity';
  if (time === -infinity - 1n) return '-infinity';
  const day = floorDivide(time, microsecondsPerDay);
  const cycle = floorDivide(day, daysPerCycle);
  // The same calendar day within the 400 years from 2000, which a Date can represent.
  const date = new Date(millisecondsTo2000 + Number(day - cycle * daysPerCycle) * millisecondsPerDay);
  const year = date.getUTCFullYear() + Number(cycle) * 400;
  const yearText = String(year > 0 ? year : 1 - year).padStart(4, '0');
  return `${yearText}${date.toISOString().slice(4, 10)} ${timeOfDay(time - day * microsecondsPerDay)}+00${year > 0 ? '' : ' BC'}`;
}

function timeOfDay(microseconds: bigint): string {
  const clock = new Date(Number(microseconds / 1_000n)).toISOString().slice(11, 19);
  const fraction = (microseconds % 1_000_000n).toString().padStart(6, '0').replace(/0+$/, '');
  return fraction === '' ? clock : `${clock}.${fraction}`;
}

const floorDivide = (value: bigint, by: bigint): bigint => (value - (((value % by) + by) % by)) / by;
