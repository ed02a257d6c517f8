import { BoundedMap } from '../../concurrency/bounded_map.ts';
import { createKeyedSemaphore } from '../../concurrency/keyed_semaphore.ts';
import { bounds } from '../../config/bounds.ts';
import { ApiError, retryAfter } from '../api_error.ts';
import { clientOf, type FailedAuthentication } from './refusals.ts';

/** Failed authentications are counted for this long, in milliseconds. */
export const failureWindowMs = 60_000;

/** Slows down who tries many keys. */
export interface AuthenticationLimiter {
  /**
   * Looks up a key that a client at this address has sent. A key that is found always passes, also while the address is
   * limited: keys are 32 random bytes, so guessing needs no lock-out, and an address may stand for many users.
   * @param find returns undefined for a key that is not valid
   * @returns what `find` found; undefined for a key that is not valid
   * @throws ApiError 429 for a key that is not valid, when the address has sent too many of them
   */
  attempt<Found>(address: string, find: () => Promise<Found | undefined>): Promise<Found | undefined>;
}

interface Failures {
  count: number;
  readonly since: number;
}

interface LimiterOptions {
  /** Failures of an address within a window that are answered with 401. */
  readonly maxFailures: number;
  readonly windowMs: number;
  /** The time in milliseconds. */
  readonly now: () => number;
  readonly onFailure: (outcome: FailedAuthentication, address: string) => void;
}

/** Counts failed attempts of each address. A count per process is enough. */
export function createAuthenticationLimiter(options: LimiterOptions): AuthenticationLimiter {
  const { maxFailures, windowMs, now, onFailure } = options;
  const failures = new BoundedMap<string, Failures>(bounds.failedAuthenticationAddresses.max);
  // The keys of a limited address are looked up one at a time, so that a flood costs one connection at most.
  const turns = createKeyedSemaphore<string>({ perKey: 1 });

  const current = (client: string): Failures | undefined => {
    const found = failures.get(client);
    if (found && now() - found.since < windowMs) return found;
    failures.delete(client);
    return undefined;
  };
  const recordFailure = (client: string): Failures => {
    const known = current(client);
    if (known) {
      known.count += 1;
      return known;
    }
    const first = { count: 1, since: now() };
    failures.set(client, first);
    return first;
  };
  const isLimited = (client: string): boolean => (current(client)?.count ?? 0) >= maxFailures;

  return {
    attempt: async (address, find) => {
      const client = clientOf(address);
      const release = isLimited(client) ? await turns.acquire(client) : undefined;
      const found = await find().finally(release);
      if (found !== undefined) return found;
      const { count, since } = recordFailure(client);
      const outcome = count > maxFailures ? 'limited' : 'rejected';
      onFailure(outcome, client);
      if (outcome === 'rejected') return undefined;
      const seconds = Math.max(1, Math.ceil((since + windowMs - now()) / 1_000));
      throw new ApiError(
        429,
        'throttled',
        `Too many invalid API keys were sent from this address. Retry in ${seconds} seconds; a valid key is accepted at once.`,
        retryAfter(seconds),
      );
    },
  };
}
