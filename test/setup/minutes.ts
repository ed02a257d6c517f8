const minute = 60_000;
/** Read once, so that a test that runs across the end of a minute keeps its minutes. */
const now = Date.now();

/** The moment `minutes` before this file's tests started. */
export const minutesBefore = (minutes: number): Date => new Date(now - minutes * minute);

/** Start of the UTC minute that is `minutes` before the one in which this file's tests started. */
export const minuteAgo = (minutes: number): Date => new Date((Math.floor(now / minute) - minutes) * minute);

/** Start of the current UTC minute. */
export const currentMinute = (): Date => new Date(Math.floor(Date.now() / minute) * minute);

/** Calls `read` until a call starts and ends within one minute, so that no interval ends meanwhile. @returns its result and that minute. */
export async function withinOneMinute<Result>(
  read: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly minute: Date }> {
  for (;;) {
    const minute = currentMinute();
    const result = await read();
    if (currentMinute().getTime() === minute.getTime()) return { result, minute };
  }
}
