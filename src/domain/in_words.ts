/** A count and its noun, such as `1 poller` or `1,234 pollers`. */
export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;

/** `2026-11-01 10:00:05 UTC` of an ISO time in UTC: to the second, as people read times. */
export const utcTime = (time: string): string => `${time.slice(0, 19).replace('T', ' ')} UTC`;
