const minute = 60_000;
/** Asked once, so that a test that runs across the end of a minute speaks of the same minutes all the time. */
const now = Date.now();

/** The moment so many minutes before the tests of this file began. */
export const minutesBefore = (minutes: number): Date => new Date(now - minutes * minute);

/** Start of the minute so many minutes before the one in which the tests of this file began, in UTC. */
export const minuteAgo = (minutes: number): Date => new Date((Math.floor(now / minute) - minutes) * minute);

/** Start of the minute that it is, in UTC. */
export const currentMinute = (): Date => new Date(Math.floor(Date.now() / minute) * minute);

/** What `look` answers within one minute, in which no interval ends, and that minute; it is repeated where one has. */
export async function withinOneMinute<Seen>(
  look: () => Promise<Seen>,
): Promise<{ readonly seen: Seen; readonly minute: Date }> {
  for (;;) {
    const minute = currentMinute();
    const seen = await look();
    if (currentMinute().getTime() === minute.getTime()) return { seen, minute };
  }
}
