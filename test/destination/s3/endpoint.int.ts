import dns from 'node:dns';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { endpointLookup } from '../../../src/destination/s3/endpoint.ts';
import { s3Settings, visitBucket } from './bucket_requests.ts';
import { startWebServer, type WebServer } from './web_server.ts';

let server: WebServer;
beforeEach(async () => {
  server = await startWebServer((_, response) => response.end());
});
afterEach(async () => {
  jest.restoreAllMocks();
  await server.close();
});

const port = (): string => new URL(server.endpoint).port;

/** Makes one request with this config; what it threw, or null. */
const visit = (config: object, allowPrivate = 'false'): Promise<unknown> =>
  visitBucket(
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

/** Has every name lead to these addresses, one look-up after the other. */
function nameServer(...answers: readonly string[]): void {
  let asked = 0;
  jest.spyOn(dns, 'lookup').mockImplementation(((_name: string, options: unknown, callback: unknown) => {
    const address = answers[Math.min(asked++, answers.length - 1)] ?? '';
    const family = address.includes(':') ? 6 : 4;
    const all = (options as { all?: boolean }).all === true;
    const answer = callback as (error: null, found: unknown, family?: number) => void;
    if (all) answer(null, [{ address, family }]);
    else answer(null, address, family);
  }) as typeof dns.lookup);
}

describe('an endpoint whose name leads inwards', () => {
  it.each(['127.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1', 'fe80::1%lo'])(
    'is refused at the moment of connecting when that is %s, and nothing reaches a server',
    async (address) => {
      nameServer(address);
      const fault = await visit({ endpoint_url: `http://storage.example.com:${port()}` });
      expect(fault).toMatchObject({ type: 'EndpointNotAllowed', transient: false });
      expect(server.received).toHaveLength(0);
    },
  );

  it('is refused through the name of the bucket in front of it too', async () => {
    nameServer('127.0.0.1');
    const fault = await visit({
      endpoint_url: `http://storage.example.com:${port()}`,
      use_virtual_style_addressing: true,
    });
    expect(fault).toMatchObject({ type: 'EndpointNotAllowed' });
    expect(server.received).toHaveLength(0);
  });

  it('is refused when one address of several does', async () => {
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

  it.each(['true', 'loopback'])('is used where the installation allows it: %s', async (allowed) => {
    nameServer('127.0.0.1');
    expect(await visit({ endpoint_url: `http://storage.example.com:${port()}` }, allowed)).toBeNull();
    expect(server.received).toHaveLength(1);
  });

  it.each(['169.254.169.254', '10.0.0.1', 'fe80::1%lo', '::ffff:169.254.169.254'])(
    'is refused where only the machine itself is allowed and it is %s',
    async (address) => {
      nameServer(address);
      const fault = await visit({ endpoint_url: `http://storage.example.com:${port()}` }, 'loopback');
      expect(fault).toMatchObject({ type: 'EndpointNotAllowed', transient: false });
      expect(server.received).toHaveLength(0);
    },
  );
});

describe('a server that redirects', () => {
  it.each([301, 302, 307, 308])('with %i to another one is not followed', async (status) => {
    const inner = await startWebServer((_, response) => response.end());
    const outer = await startWebServer((_, response) =>
      response.writeHead(status, { location: `${inner.endpoint}/bucket` }).end(),
    );
    const fault = await visit({ endpoint_url: outer.endpoint }, 'true');
    expect(fault).toMatchObject({ name: 'DestinationError', transient: false });
    expect(outer.received.length).toBeGreaterThan(0);
    expect(inner.received).toHaveLength(0);
    await inner.close();
    await outer.close();
  });
});
