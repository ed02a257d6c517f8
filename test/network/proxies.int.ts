import dns from 'node:dns';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { SpanKind } from '@opentelemetry/api';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import { sendWebhook } from '../../src/notifications/send_webhook.ts';
import { draftByModel } from '../../src/queries/draft_sql/draft_by_model.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { startTracing } from '../../src/telemetry/tracing.ts';
import { createClient } from '../../src/temporal/connections.ts';
import { inNewTrace } from '../../src/tracing/spans.ts';
import { configOf, requestError, s3Settings } from '../destination/bucket_requests.ts';
import { startFakeServer } from '../destination/fake_server.ts';
import { createExportHarness } from '../export/export_harness.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { createCertificateAuthority } from '../setup/certificates.ts';
import { fromSetUp } from '../setup/environment.ts';
import { type ForwardProxy, startForwardProxy } from '../setup/forward_proxy.ts';
import { openTlsProxy } from '../setup/tls_proxy.ts';

// No name of this domain resolves: only the proxy knows them.
const storeName = 'store.proxied.invalid';
const otherName = 'other.proxied.invalid';
const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
const portOf = (url: string): number => Number(new URL(url).port);

let bucket: TestBucket;
const ends: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  bucket = await createBucket();
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const end of ends.splice(0).reverse()) await end();
});

async function startProxy(ports: Record<string, number>, refusal?: number): Promise<ForwardProxy> {
  const proxy = await startForwardProxy(ports, refusal);
  ends.push(() => proxy.close());
  return proxy;
}
const publicOnly = { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'false' };

/** Lets a name lead to an address, for this process. */
function resolve(address: string): void {
  jest.spyOn(dns, 'lookup').mockImplementation(((_: string, options: unknown, callback: unknown) => {
    const respond = callback as (error: null, found: unknown, family?: number) => void;
    if ((options as { all?: boolean }).all === true) respond(null, [{ address, family: 4 }]);
    else respond(null, address, 4);
  }) as typeof dns.lookup);
}

describe('with HTTP_PROXY', () => {
  it('an export goes through it, to a name that only the proxy knows', async () => {
    const harness = await createExportHarness(bucket);
    ends.push(() => harness.close());
    await harness.insertEvents(20);
    const proxy = await startProxy({ [storeName]: portOf(bucket.endpoint) });
    const settings: Settings = { ...harness.settings, HTTP_PROXY: proxy.url };
    const openDestination = createDestinationOpener(harness.database.pool, harness.keyRing, settings);
    const config = { endpoint_url: `http://${storeName}:9000` };
    const { run_id } = await harness.createRun({ config });
    const activities = harness.attempt({ openDestination, settings });
    await activities.exportInterval({ run_id });
    const { manifest_key } = await activities.publishManifest({ run_id });
    const manifest = await harness.reader.manifestAt(manifest_key);
    expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
    expect(new Set(proxy.requests.map((request) => request.split(' ')[1]))).toEqual(
      new Set([`${storeName}:9000`]),
    );
  });

  it('what NO_PROXY lists is reached without it', async () => {
    const proxy = await startProxy({});
    const settings = s3Settings({ HTTP_PROXY: proxy.url, NO_PROXY: '.invalid' });
    resolve('127.0.0.1');
    const config = configOf(bucket, { endpoint_url: `http://${storeName}:${portOf(bucket.endpoint)}` });
    expect(await requestError(config, settings)).toBeNull();
    expect(proxy.requests).toEqual([]);
  });

  it('this machine is reached without it', async () => {
    const proxy = await startProxy({});
    const settings = s3Settings({ HTTP_PROXY: proxy.url });
    expect(await requestError(configOf(bucket), settings)).toBeNull();
    expect(proxy.requests).toEqual([]);
  });

  it.each([
    [407, { type: 'ProxyAuthenticationRequired', owner: 'operator' }],
    [502, { transient: true }],
  ])('that refuses with %i, the error says so', async (status, expected) => {
    const proxy = await startProxy({}, status);
    const settings = s3Settings({ http_proxy: proxy.url, EXPORTD_S3_RETRY_BUDGET: '0s' });
    const config = configOf(bucket, { endpoint_url: `http://${storeName}` });
    expect(await requestError(config, settings)).toMatchObject(expected);
  });

  it('a store that asks for the login of a proxy is not believed', async () => {
    const store = await startFakeServer((_, response) => response.writeHead(407).end());
    ends.push(() => store.close());
    const proxy = await startProxy({ [storeName]: portOf(store.endpoint) });
    const settings = s3Settings({ HTTP_PROXY: proxy.url, EXPORTD_S3_RETRY_BUDGET: '0s' });
    const config = configOf(bucket, { endpoint_url: `http://${storeName}` });
    expect(await requestError(config, settings)).toMatchObject({ owner: 'tenant', transient: false });
  });

  it('that is down is a fault of the operator, by the name of the setting', async () => {
    const ended = await startForwardProxy({});
    await ended.close();
    const url = ended.url.replace('//', '//user:secret@');
    const settings = s3Settings({ HTTP_PROXY: url, HTTPS_PROXY: url, EXPORTD_S3_RETRY_BUDGET: '0s' });
    for (const [scheme, name] of [
      ['http', 'HTTP_PROXY'],
      ['https', 'HTTPS_PROXY'],
    ]) {
      const config = configOf(bucket, { endpoint_url: `${scheme}://${storeName}` });
      expect(await requestError(config, settings)).toMatchObject({
        type: 'ProxyUnreachable',
        owner: 'operator',
        message: `The proxy of ${name} cannot be reached (ECONNREFUSED): check that it is up, or list what is reached without it in NO_PROXY.`,
      });
    }
    const message = { id: 'm', url: `https://${otherName}/hook`, secret: undefined, body: '{}' };
    expect(await sendWebhook(message, settings)).toMatchObject({
      delivered: false,
      detail: "The proxy of exportd's machine could not be reached (ECONNREFUSED).",
    });
  });

  it('gets user and password', async () => {
    const proxy = await startProxy({ [storeName]: portOf(bucket.endpoint) });
    const settings = s3Settings({ HTTP_PROXY: proxy.url.replace('//', '//us%40er:pass@') });
    const config = configOf(bucket, { endpoint_url: `http://${storeName}` });
    expect(await requestError(config, settings)).toBeNull();
    expect(proxy.logins).toContain(`Basic ${Buffer.from('us@er:pass').toString('base64')}`);
  });

  it("credentials of exportd's machine are got through it", async () => {
    const sts = await startFakeServer((_, response) => response.writeHead(400).end());
    ends.push(() => sts.close());
    const proxy = await startProxy({ [otherName]: portOf(sts.endpoint) });
    const token = join(mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'token-')), 'token');
    writeFileSync(token, 'token');
    const environment = {
      AWS_WEB_IDENTITY_TOKEN_FILE: token,
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/machine',
      AWS_ENDPOINT_URL_STS: `http://${otherName}`,
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_REGION: 'eu-west-1',
    };
    Object.assign(process.env, environment);
    ends.push(() => {
      for (const name of Object.keys(environment)) Reflect.deleteProperty(process.env, name);
      return Promise.resolve();
    });
    const settings = s3Settings({ HTTP_PROXY: proxy.url, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: 'true' });
    const { bucket_name, region, prefix } = configOf(bucket);
    expect(await requestError({ bucket_name, region, prefix }, settings)).toMatchObject({
      owner: 'operator',
    });
    expect(new Set(proxy.requests)).toEqual(new Set([`POST ${otherName}`]));
  });

  it('a webhook and a model go through it', async () => {
    const receiver = await startFakeServer((request, response) => {
      const reply = { choices: [{ message: { content: 'select 1' } }] };
      response.end(request.path.endsWith('/completions') ? JSON.stringify(reply) : '');
    });
    ends.push(() => receiver.close());
    const proxy = await startProxy({ [otherName]: portOf(receiver.endpoint) });
    const settings = readSettings({
      DATABASE_URL: 'postgres://localhost/x',
      HTTP_PROXY: proxy.url,
      EXPORTD_DRAFT_SQL_URL: `http://${otherName}/v1`,
    });
    const message = { id: 'm', url: `http://${otherName}/hook`, secret: undefined, body: '{}' };
    expect(await sendWebhook(message, settings)).toMatchObject({ delivered: true, status: 200 });
    const vocabulary = { events: [], properties: [] };
    const input = { prompt: 'one', current_query: null, vocabulary, today: '2026-11-28' };
    const drafted = await draftByModel({ settings, logger }, input, (sql) => Promise.resolve(sql));
    expect(drafted).toBe('select 1');
    expect(proxy.requests).toEqual([`POST ${otherName}`, `POST ${otherName}`]);
  });

  it('traces go through it', async () => {
    const collector = await startFakeServer((_, response) => response.end('{}'));
    ends.push(() => collector.close());
    const proxy = await startProxy({ [otherName]: portOf(collector.endpoint) });
    process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://${otherName}`;
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${otherName}`, HTTP_PROXY: proxy.url };
    const tracing = await startTracing('server', settings, logger);
    await inNewTrace('a span', { kind: SpanKind.INTERNAL }, () => Promise.resolve());
    await tracing?.stop();
    expect(proxy.requests).toEqual([`POST ${otherName}`]);
    expect(collector.received).toHaveLength(1);
  });

  it('Temporal is reached without it', async () => {
    const proxy = await startProxy({});
    const names = ['grpc_proxy', 'http_proxy', 'https_proxy'];
    for (const name of names) process.env[name] = proxy.url;
    const address = fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS');
    const settings = readSettings({ DATABASE_URL: 'postgres://localhost/x', TEMPORAL_ADDRESS: address });
    const { connection, close } = await createClient(settings);
    ends.push(close);
    await connection.workflowService.getSystemInfo({});
    expect(proxy.requests).toEqual([]);
  });
});

describe('with HTTPS_PROXY', () => {
  it('TLS goes through it to the store, whose CA is trusted', async () => {
    const authority = createCertificateAuthority();
    const store = await openTlsProxy(bucket.endpoint, authority.issue(storeName));
    ends.push(() => store.close());
    const path = join(mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'proxied-')), 'authority.pem');
    writeFileSync(path, authority.certificate);
    const proxy = await startProxy({ [storeName]: store.port });
    const settings = s3Settings({ HTTPS_PROXY: proxy.url, EXPORTD_S3_CA_BUNDLE: path });
    const config = configOf(bucket, { endpoint_url: `https://${storeName}` });
    expect(await requestError(config, settings)).toBeNull();
    expect(proxy.requests).toEqual([`CONNECT ${storeName}:443`]);
  });
});

describe('a private address', () => {
  it('of a store is not reached through a proxy either', async () => {
    const proxy = await startProxy({ [storeName]: portOf(bucket.endpoint) });
    const settings = s3Settings({ ...publicOnly, HTTP_PROXY: proxy.url });
    resolve('10.0.0.1');
    const config = configOf(bucket, { endpoint_url: `http://${storeName}` });
    expect(await requestError(config, settings)).toMatchObject({ type: 'EndpointNotAllowed' });
    expect(proxy.requests).toEqual([]);
  });

  it('of a webhook is not reached through a proxy either', async () => {
    const proxy = await startProxy({});
    resolve('169.254.169.254');
    const settings = readSettings({ DATABASE_URL: 'postgres://localhost/x', HTTP_PROXY: proxy.url });
    const message = { id: 'm', url: `http://${otherName}/hook`, secret: undefined, body: '{}' };
    expect(await sendWebhook(message, settings)).toMatchObject({
      delivered: false,
      detail: expect.stringContaining('private or loopback address'),
    });
    expect(proxy.requests).toEqual([]);
  });
});
