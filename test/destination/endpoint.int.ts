import dns from 'node:dns';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { endpointLookup } from '../../src/destination/config.ts';
import { s3Settings, requestError } from './bucket_requests.ts';
import { startFakeServer, type FakeServer } from './fake_server.ts';

let server: FakeServer;
beforeEach(async () => {
  server = await startFakeServer((_, response) => response.end());
});
afterEach(async () => {
  jest.restoreAllMocks();
  await server.close();
});

const port = (): string => new URL(server.endpoint).port;

/** Sends one request with this config; returns its error or null. */
const requestErrorOf = (config: object, allowPrivate = 'false'): Promise<unknown> =>
  requestError(
    {
      bucket_name: 'bucket',
      region: 'us-east-1',
      prefix: '',
      aws_access_key_id: 'id',
      aws_secret_access_key: 'secret',
      ...config,
    },
    s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s', EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowPrivate }),
  );

/** Makes each DNS lookup return the next of these addresses. */
function fakeLookup(...addresses: readonly string[]): void {
  let asked = 0;
  jest.spyOn(dns, 'lookup').mockImplementation(((_name: string, options: unknown, callback: unknown) => {
    const address = addresses[Math.min(asked++, addresses.length - 1)] ?? '';
    const family = address.includes(':') ? 6 : 4;
    const all = (options as { all?: boolean }).all === true;
    const respond = callback as (error: null, found: unknown, family?: number) => void;
    if (all) respond(null, [{ address, family }]);
    else respond(null, address, family);
  }) as typeof dns.lookup);
}

describe('an endpoint that resolves to a private address', () => {
  it.each(['127.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1', 'fe80::1%lo'])(
    'is rejected when connecting to %s, before anything is sent',
    async (address) => {
      fakeLookup(address);
      const error = await requestErrorOf({ endpoint_url: `http://storage.example.com:${port()}` });
      expect(error).toMatchObject({ type: 'EndpointNotAllowed', transient: false });
      expect(server.received).toHaveLength(0);
    },
  );

  it('is rejected with virtual-hosted addressing too', async () => {
    fakeLookup('127.0.0.1');
    const error = await requestErrorOf({
      endpoint_url: `http://storage.example.com:${port()}`,
      use_virtual_style_addressing: true,
    });
    expect(error).toMatchObject({ type: 'EndpointNotAllowed' });
    expect(server.received).toHaveLength(0);
  });

  it('is rejected when one of several addresses is private', async () => {
    jest.spyOn(dns, 'lookup').mockImplementation(((_name: string, _options: unknown, callback: unknown) => {
      (callback as (error: null, found: unknown) => void)(null, [
        { address: '8.8.8.8', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ]);
    }) as typeof dns.lookup);
    const error = await new Promise((resolve) =>
      endpointLookup(false)('storage.example.com', { all: true }, resolve),
    );
    expect(error).toMatchObject({ type: 'EndpointNotAllowed' });
  });

  it.each(['true', 'loopback'])('is allowed by the setting %s', async (allowed) => {
    fakeLookup('127.0.0.1');
    expect(
      await requestErrorOf({ endpoint_url: `http://storage.example.com:${port()}` }, allowed),
    ).toBeNull();
    expect(server.received).toHaveLength(1);
  });

  it.each(['169.254.169.254', '10.0.0.1', 'fe80::1%lo', '::ffff:169.254.169.254'])(
    'is rejected for %s when only loopback is allowed',
    async (address) => {
      fakeLookup(address);
      const error = await requestErrorOf(
        { endpoint_url: `http://storage.example.com:${port()}` },
        'loopback',
      );
      expect(error).toMatchObject({ type: 'EndpointNotAllowed', transient: false });
      expect(server.received).toHaveLength(0);
    },
  );
});

describe('a server that redirects', () => {
  it.each([301, 302, 307, 308])('with %i to another server is not followed', async (status) => {
    const inner = await startFakeServer((_, response) => response.end());
    const outer = await startFakeServer((_, response) =>
      response.writeHead(status, { location: `${inner.endpoint}/bucket` }).end(),
    );
    const error = await requestErrorOf({ endpoint_url: outer.endpoint }, 'true');
    expect(error).toMatchObject({ name: 'DestinationError', transient: false });
    expect(outer.received.length).toBeGreaterThan(0);
    expect(inner.received).toHaveLength(0);
    await inner.close();
    await outer.close();
  });
});
