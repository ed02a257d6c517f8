const hour = 3_600_000;
/** Read once, so that a test that runs across the end of an hour keeps its hours. */
const currentHour = Math.floor(Date.now() / hour);

/** Start of the UTC hour that is `hours` before the current one. */
export const hourAgo = (hours: number): Date => new Date((currentHour - hours) * hour);
