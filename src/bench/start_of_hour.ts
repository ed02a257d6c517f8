const hourMs = 3_600_000;

/** The start of the hour (UTC) of a time in milliseconds, by default of now: whole hours before it have ended. */
export const startOfHour = (time = Date.now()): number => Math.floor(time / hourMs) * hourMs;
