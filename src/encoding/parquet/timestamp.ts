/**
 * Microseconds from 1970 (Parquet) to 2000 (PostgreSQL). All times of PostgreSQL fit except its last 30 years (294247
 * to 294276) and infinities. Times before the year 1 and after 9999 are kept: DuckDB and Arrow read them.
 */
export const epochShift = 946_684_800_000_000;

/** DuckDB reads the largest int64 as infinity, so it is excluded. */
const lastTime = 2n ** 63n - 2n - BigInt(epochShift);

/** Whether Parquet can represent the binary timestamp at `at`. The high half alone decides for all usual times. */
export function fitsTimestamp(view: DataView, at: number): boolean {
  const high = view.getInt32(at);
  if (high > -0x7000_0000 && high < 0x7000_0000) return true;
  return high > 0 && view.getBigInt64(at) <= lastTime;
}

/** Days from 1970 (Parquet) to 2000 (PostgreSQL). */
export const epochDays = 10_957;

/**
 * Whether Parquet can represent the binary date at `at`: all dates except infinities, which are the limits of int32.
 */
export function fitsDate(view: DataView, at: number): boolean {
  const day = view.getInt32(at);
  return day !== 0x7fff_ffff && day !== -0x8000_0000;
}
