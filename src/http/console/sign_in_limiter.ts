import { ApiError } from '../api_error.ts';

/** Slows down whoever tries many keys. */
export interface SignInLimiter {
  /** @throws ApiError 429 */
  admit(address: string): void;
  recordFailure(address: string): void;
}

interface Failures {
  count: number;
  readonly since: number;
}

interface LimiterOptions {
  readonly maxFailures: number;
  readonly windowMs: number;
  /** The time in milliseconds. */
  readonly now: () => number;
}

/** The oldest are forgotten above this number, so that many addresses use bounded memory. */
const maxAddresses = 10_000;

/** Counts failed attempts of each address. Keys are 32 random bytes, so a count per process is enough. */
export function createSignInLimiter({ maxFailures, windowMs, now }: LimiterOptions): SignInLimiter {
  const failures = new Map<string, Failures>();
  const current = (address: string): Failures | undefined => {
    const found = failures.get(address);
    if (found && now() - found.since < windowMs) return found;
    failures.delete(address);
    return undefined;
  };
  return {
    admit: (address) => {
      const found = current(address);
      if (!found || found.count < maxFailures) return;
      const seconds = Math.ceil((found.since + windowMs - now()) / 1_000);
      throw new ApiError(
        429,
        'throttled',
        `Too many failed attempts to sign in. Retry in ${seconds} seconds.`,
        { headers: { 'retry-after': String(seconds) } },
      );
    },
    recordFailure: (address) => {
      const found = current(address);
      if (found) {
        found.count += 1;
        return;
      }
      const [oldest] = failures.keys();
      if (failures.size >= maxAddresses && oldest !== undefined) failures.delete(oldest);
      failures.set(address, { count: 1, since: now() });
    },
  };
}
