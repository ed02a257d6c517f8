/**
 * Parquet counts microseconds from 1970, PostgreSQL from 2000. All times of PostgreSQL fit but its last 30 years
 * (294247 to 294276) and the infinities. The times before the year 1 and after 9999 stay: DuckDB and Arrow read them.
 */
export const epochShift = 946_684_800_000_000;

/** DuckDB reads the largest int64 as infinity, so that it is no time either. */
const lastTime = 2n ** 63n - 2n - BigInt(epochShift);

/** Whether the binary timestamp at `at` can be held; the test on its high half alone decides for all usual times. */
export function fitsTimestamp(view: DataView, at: number): boolean {
  const high = view.getInt32(at);
  if (high > -0x7000_0000 && high < 0x7000_0000) return true;
  return high > 0 && view.getBigInt64(at) <= lastTime;
}

/** Parquet counts days from 1970, PostgreSQL from 2000. */
export const epochDays = 10_957;

/** Whether the binary date at `at` can be held: all but the infinities, which are the ends of int32. */
export function fitsDate(view: DataView, at: number): boolean {
  const day = view.getInt32(at);
  return day !== 0x7fff_ffff && day !== -0x8000_0000;
}
