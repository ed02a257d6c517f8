import { describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { proxyOf } from '../../src/network/proxies.ts';

/** The setting whose proxy a request goes through. */
const wayTo = (url: string, noProxy: string, given: Record<string, string> = {}) =>
  proxyOf(
    new URL(url),
    readSettings({
      DATABASE_URL: 'postgres://localhost/x',
      HTTP_PROXY: 'http://proxy:3128',
      HTTPS_PROXY: 'https://proxy:3129',
      NO_PROXY: noProxy,
      ...given,
    }),
  );

describe('NO_PROXY', () => {
  it.each([
    ['*', 'https://store.example'],
    ['store.example', 'https://store.example'],
    ['store.example', 'https://bucket.store.example:9000'],
    ['STORE.example.', 'https://store.example'],
    ['.store.example', 'https://store.example'],
    ['.store.example', 'https://bucket.store.example'],
    ['*.store.example', 'https://bucket.store.example'],
    ['a, store.example', 'https://store.example'],
    ['a store.example', 'https://store.example'],
    ['store.example:9000', 'https://store.example:9000'],
    ['store.example:443', 'https://store.example'],
    ['store.example:80', 'http://store.example'],
    ['10.1.2.3', 'https://10.1.2.3:9000'],
    ['10.1.2.3:9000', 'https://10.1.2.3:9000'],
    ['10.0.0.0/8', 'https://10.1.2.3'],
    ['fd00::1', 'https://[fd00::1]'],
    ['[fd00::1]', 'https://[fd00::1]'],
    ['[fd00::1]:9000', 'https://[fd00::1]:9000'],
    ['fd00::/8', 'https://[fd12::1]'],
  ])('%s lists %s', (noProxy, url) => {
    expect(wayTo(url, noProxy)).toBeUndefined();
  });

  it.each([
    ['', 'https://store.example'],
    ['store.example', 'https://another-store.example'],
    ['store.example', 'https://store.example.org'],
    ['store.example:9000', 'https://store.example'],
    ['10.1.2.3:9000', 'https://10.1.2.3'],
    ['10.0.0.0/8', 'https://11.1.2.3'],
    ['10.0.0.0/8', 'https://ten.example'],
    ['fd00::/8', 'https://[fe00::1]'],
    ['0.0.0.0/0', 'https://[fd00::1]'],
  ])('%s does not list %s', (noProxy, url) => {
    expect(wayTo(url, noProxy)).toBe('HTTPS_PROXY');
  });
});

describe('a proxy', () => {
  it('is for requests of its own protocol', () => {
    expect(wayTo('http://store.example', '')).toBe('HTTP_PROXY');
    expect(wayTo('http://store.example', '', { HTTP_PROXY: '' })).toBeUndefined();
    expect(wayTo('https://store.example', '', { HTTPS_PROXY: '' })).toBeUndefined();
  });

  it.each(['http://localhost:9000', 'http://127.0.0.1:9000', 'https://127.9.9.9', 'http://[::1]:9000'])(
    'is never asked for %s, which would be its own machine',
    (url) => {
      expect(wayTo(url, '')).toBeUndefined();
    },
  );
});
