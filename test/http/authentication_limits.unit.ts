import { describe, expect, it } from '@jest/globals';
import { createAuthenticationLimiter } from '../../src/http/plugins/authentication_limiter.ts';

function createLimiter() {
  const state = { now: 0, outcomes: [] as string[] };
  const limiter = createAuthenticationLimiter({
    maxFailures: 2,
    windowMs: 1_000,
    now: () => state.now,
    onFailure: (outcome, client) => state.outcomes.push(`${client} ${outcome}`),
  });
  /** Sends a key, valid or not. */
  const attempt = (address: string, found?: string) =>
    limiter.attempt(address, () => Promise.resolve(found)).catch((error: unknown) => String(error));
  return { state, limiter, attempt };
}

describe('failed authentications', () => {
  it('are counted by address, within a window, and valid keys pass', async () => {
    const { state, attempt } = createLimiter();
    expect([await attempt('a'), await attempt('a')]).toEqual([undefined, undefined]);
    expect(await attempt('a')).toMatch(/Too many invalid API keys.*1 seconds/);
    expect([await attempt('a', 'caller'), await attempt('b')]).toEqual(['caller', undefined]);
    state.now = 999;
    expect(await attempt('a')).toMatch(/Too many/);
    state.now = 1_000;
    expect(await attempt('a')).toBeUndefined();
    expect(state.outcomes).toEqual([
      'a rejected',
      'a rejected',
      'a limited',
      'b rejected',
      'a limited',
      'a rejected',
    ]);
  });

  it('of an address that is limited are looked up one at a time', async () => {
    const { limiter, attempt } = createLimiter();
    await attempt('a');
    await attempt('a');
    let running = 0;
    let most = 0;
    const slow = async () => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      return undefined;
    };
    await Promise.allSettled(Array.from({ length: 10 }, () => limiter.attempt('a', slow)));
    expect(most).toBe(1);
  });

  it.each([
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:DB8:0:0:1::', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('from %s are counted for %s', async (address, client) => {
    const { state, attempt } = createLimiter();
    await attempt(address);
    expect(state.outcomes).toEqual([`${client} rejected`]);
  });
});
