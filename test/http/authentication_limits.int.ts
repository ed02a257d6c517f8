import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

/** The default. */
const limit = { EXPORTD_MAX_FAILED_AUTHENTICATIONS: '30' };

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ ...limit, EXPORTD_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8' });
});
afterAll(() => api.close());

/** A key that does not exist, with the form of one. */
const unknownKey = () => `exk_${randomBytes(32).toString('base64url')}`;

/** Sends a key from an address, through the proxy of the harness. */
const list = (key: string, address: string) =>
  api.call('GET', 'batch_exports/', undefined, {
    authorization: `Bearer ${key}`,
    'x-forwarded-for': address,
  });
const signIn = (key: string, address: string) =>
  api.call(
    'POST',
    '/console/session',
    { key },
    {
      authorization: '',
      'x-exportd-console': '1',
      origin: 'http://localhost',
      'x-forwarded-for': address,
    },
  );

/** Sends unknown keys until one is limited. @returns how many were checked before */
async function exhaust(address: string): Promise<number> {
  for (let count = 0; count < 400; count += 1)
    if ((await list(unknownKey(), address)).status === 429) return count;
  throw new Error('400 unknown keys were checked.');
}

describe('unknown keys from one address', () => {
  it('are limited on all paths together, and a valid key passes', async () => {
    expect(await exhaust('192.0.2.1')).toBe(30);
    const limited = await signIn(unknownKey(), '192.0.2.1');
    expect(limited.status).toBe(429);
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    expect((await list(api.key, '192.0.2.1')).status).toBe(200);
    expect((await signIn(api.key, '192.0.2.1')).status).toBe(200);
  });

  it('are counted by the address that the trusted proxy names, not by one that a client invents', async () => {
    await exhaust('192.0.2.2');
    expect((await list(unknownKey(), '192.0.2.3')).status).toBe(401);
    // The last address is the one that the proxy has seen.
    expect((await list(unknownKey(), '198.51.100.7, 192.0.2.2')).status).toBe(429);
    expect((await list(unknownKey(), '192.0.2.2, 10.1.2.3')).status).toBe(429);
  });

  it('are counted by network where the address is IPv6', async () => {
    await exhaust('2001:db8:1:2::1');
    expect((await list(unknownKey(), '2001:db8:1:2:3:4:5:6')).status).toBe(429);
    expect((await list(unknownKey(), '2001:db8:1:3::1')).status).toBe(401);
  });

  it('are one metric', async () => {
    await api.call('GET', 'batch_exports/', undefined, { authorization: '' });
    const text = await api.metrics();
    const counted = (reason: string) =>
      Number(
        new RegExp(`^exportd_http_refused_requests_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(
          text,
        )?.[1],
      );
    expect(counted('rejected')).toBeGreaterThanOrEqual(90);
    expect(counted('limited')).toBeGreaterThanOrEqual(5);
    expect(counted('missing')).toBeGreaterThanOrEqual(1);
  });
});

describe('without trusted proxies', () => {
  it('a header that names another address changes nothing', async () => {
    const direct = await openApiHarness(limit);
    try {
      const statuses = [];
      for (let count = 0; count < 40; count += 1)
        statuses.push(
          (
            await direct.call('GET', 'batch_exports/', undefined, {
              authorization: `Bearer ${unknownKey()}`,
              'x-forwarded-for': `192.0.2.${count}`,
            })
          ).status,
        );
      expect(statuses.filter((status) => status === 429)).toHaveLength(10);
    } finally {
      await direct.close();
    }
  });
});
