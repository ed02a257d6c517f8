const hour = 3_600_000;
/** Asked once, so that a test that runs across the end of an hour speaks of the same hours all the time. */
const currentHour = Math.floor(Date.now() / hour);

/** Start of the hour so many hours before the current one, in UTC. */
export const hourAgo = (hours: number): Date => new Date((currentHour - hours) * hour);
