import { randomUUID } from 'node:crypto';
import dns from 'node:dns';
import { writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import type { DestinationError } from '../../src/destination/destination.ts';
import { createS3Requests } from '../../src/destination/requests.ts';
import { fromSetUp } from '../setup/environment.ts';
import { requestError, s3Settings } from './bucket_requests.ts';
import { type FakeServer, startFakeServer } from './fake_server.ts';
import { roleRefusal } from '../../src/destination/credentials.ts';
import { endpointLookup } from '../../src/destination/endpoint.ts';

describe('requests', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.close();
  });

  /**
   * Sends a request to a server that is busy for `busyRequests` requests; returns the reported errors and the outcome.
   */
  const requestFromBusyServer = (busyRequests: number, retryBudgetMs: number) =>
    requestFrom((requestCount, response) => {
      response.writeHead(requestCount > busyRequests ? 200 : 503).end(emptyList);
    }, retryBudgetMs);

  /** Sends a request to a server whose responses depend on the number of requests. */
  async function requestFrom(
    respond: (requestCount: number, response: ServerResponse) => void,
    retryBudgetMs: number,
  ) {
    let requestCount = 0;
    const listening = createServer((_, response) => {
      requestCount += 1;
      respond(requestCount, response);
    });
    server = listening;
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const settings = s3Settings({ EXPORTD_S3_RETRY_BUDGET: `${retryBudgetMs}ms` });
    const waits: DestinationError[] = [];
    const config = {
      bucket_name: 'bucket',
      region: 'us-east-1',
      prefix: '',
      endpoint_url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`,
      aws_access_key_id: 'id',
      aws_secret_access_key: 'secret',
    };
    const requests = createS3Requests(s3Config(config), { settings, onError: (fault) => waits.push(fault) });
    const error = await requests
      .send('ListObjectsV2', new AbortController().signal, (client, call) =>
        client.send(new ListObjectsV2Command({ Bucket: 'bucket' }), call),
      )
      .then(
        () => 'responded',
        (fault: unknown) => fault,
      )
      .finally(() => requests.close());
    return { outcome: error, waits };
  }

  const emptyList =
    '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>bucket</Name></ListBucketResult>';

  const s3Config = (config: object) => parseS3Config(config, s3Settings());

  describe('a server of a tenant that accuses the operator', () => {
    it.each([
      [403, 'RequestTimeTooSkewed'],
      [400, 'ExpiredToken'],
      [407, 'ProxyAuthenticationRequired'],
    ])('is not believed with status %d and %s', async (status, code) => {
      const { outcome, waits } = await requestFrom((_, response) => {
        const body = `<Error><Code>${code}</Code><Message>Too far.</Message></Error>`;
        response.writeHead(status, { 'content-type': 'application/xml' }).end(body);
      }, 60_000);
      expect(outcome).toMatchObject({ type: code, owner: 'tenant', transient: false });
      expect(waits).toEqual([]);
    });
  });

  describe('requests that a server refuses with status 400 for a moment', () => {
    it.each(['KMS.ThrottlingException', 'BadDigest', 'IncompleteBody', 'XAmzContentSHA256Mismatch'])(
      'are repeated after %s',
      async (code) => {
        const { outcome, waits } = await requestFrom((requestCount, response) => {
          const body = `<Error><Code>${code}</Code><Message>Again.</Message></Error>`;
          if (requestCount > 2) response.end(emptyList);
          else response.writeHead(400, { 'content-type': 'application/xml' }).end(body);
        }, 60_000);
        expect(outcome).toBe('responded');
        expect(waits).toContainEqual(expect.objectContaining({ type: code, transient: true }));
      },
    );
  });

  describe('requests during an outage', () => {
    it('are retried until the server is back, and reported', async () => {
      const { outcome: error, waits } = await requestFromBusyServer(5, 60_000);
      expect(error).toBe('responded');
      expect(waits.length).toBeGreaterThan(0);
    });

    it('fail with a transient error when the retry budget is exhausted', async () => {
      const { outcome: error } = await requestFromBusyServer(Number.POSITIVE_INFINITY, 30);
      expect(error).toMatchObject({ name: 'DestinationError', transient: true });
    });
  });
});

describe('requests to an endpoint', () => {
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
    it.each([301, 302, 308])('with %i to another server is not followed', async (status) => {
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
});

describe('requests with a role', () => {
  const role = 'arn:aws:iam::123456789012:role/exports';
  const keys = { aws_access_key_id: 'AKIABASE', aws_secret_access_key: 'base-secret' };
  const assumed = { id: 'ASIAASSUMED', secret: 'assumed-secret', token: 'assumed-token' };

  const credentialsXml = (action: string): string =>
    `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result>
  <Credentials><AccessKeyId>${assumed.id}</AccessKeyId><SecretAccessKey>${assumed.secret}</SecretAccessKey>
  <SessionToken>${assumed.token}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
  </${action}Result></${action}Response>`;
  const errorXml = (code: string): string =>
    `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code>
  <Message>${keys.aws_access_key_id} is not allowed.</Message></Error></ErrorResponse>`;

  let sts: FakeServer;
  let store: FakeServer;
  /** Without `xml`, the credentials. */
  let stsResponse: { status: number; xml?: string };
  /** Whether AWS denies an external id that is not that of the project. */
  let demandsExternalId: boolean;
  const machineAccount = '999999999999';
  const identityXml = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
  <Arn>arn:aws:iam::${machineAccount}:role/exportd</Arn><Account>${machineAccount}</Account>
  </GetCallerIdentityResult></GetCallerIdentityResponse>`;
  const environment = [
    'AWS_ENDPOINT_URL_STS',
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SHARED_CREDENTIALS_FILE',
    'AWS_CONFIG_FILE',
    'AWS_ROLE_ARN',
    'AWS_WEB_IDENTITY_TOKEN_FILE',
  ] as const;
  const before = environment.map((name) => process.env[name]);

  beforeEach(async () => {
    stsResponse = { status: 200 };
    demandsExternalId = true;
    sts = await startFakeServer(({ body }, response) => {
      const form = new URLSearchParams(body);
      const action = form.get('Action') ?? '';
      const externalId = form.get('ExternalId');
      const isDenied = demandsExternalId && externalId !== null && externalId !== 'project-7';
      const { status, xml = action === 'GetCallerIdentity' ? identityXml : credentialsXml(action) } = isDenied
        ? { status: 403, xml: errorXml('AccessDenied') }
        : stsResponse;
      response.writeHead(status, { 'content-type': 'text/xml' }).end(xml);
    });
    store = await startFakeServer((_, response) => response.end());
    process.env.AWS_ENDPOINT_URL_STS = sts.endpoint;
  });
  afterEach(async () => {
    for (const [position, name] of environment.entries()) {
      const value = before[position];
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    }
    await sts.close();
    await store.close();
  });

  /** Sends one request to the store with this config; returns its error or null. */
  const requestErrorOf = (
    config: object,
    settings = s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s' }),
  ): Promise<unknown> =>
    requestError(
      { bucket_name: 'bucket', region: 'auto', prefix: '', endpoint_url: store.endpoint, ...config },
      settings,
    );
  /** What AWS STS was asked. */
  const asked = () => sts.received.map(({ body }) => new URLSearchParams(body).get('Action'));

  describe('a destination with a role', () => {
    it('assumes it with its keys and external id, and signs with the temporary credentials', async () => {
      expect(await requestErrorOf({ ...keys, role_arn: role, external_id: 'project-7' })).toBeNull();
      expect(sts.received).toHaveLength(1);
      const form = new URLSearchParams(sts.received[0]?.body);
      expect(Object.fromEntries(form)).toMatchObject({
        Action: 'AssumeRole',
        RoleArn: role,
        ExternalId: 'project-7',
        RoleSessionName: 'exportd',
      });
      expect(sts.received[0]?.headers.authorization).toContain(`Credential=${keys.aws_access_key_id}/`);
      expect(store.received[0]?.headers.authorization).toContain(`Credential=${assumed.id}/`);
      expect(store.received[0]?.headers['x-amz-security-token']).toBe(assumed.token);
    });

    it('assumes it with the credentials of the machine if it has no keys', async () => {
      process.env.AWS_ACCESS_KEY_ID = 'AKIAMACHINE';
      process.env.AWS_SECRET_ACCESS_KEY = 'machine-secret';
      expect(await requestErrorOf({ role_arn: role })).toBeNull();
      for (const { headers } of sts.received)
        expect(headers.authorization).toContain('Credential=AKIAMACHINE/');
      expect(new URLSearchParams(sts.received.at(-1)?.body).has('ExternalId')).toBe(false);
      expect(store.received[0]?.headers.authorization).toContain(`Credential=${assumed.id}/`);
    });

    describe('without keys', () => {
      beforeEach(() => {
        process.env.AWS_ACCESS_KEY_ID = 'AKIAMACHINE';
        process.env.AWS_SECRET_ACCESS_KEY = 'machine-secret';
      });
      const guarded = { role_arn: role, external_id: 'project-7' };

      it('assumes it once with another external id, which AWS has to deny', async () => {
        const settings = s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s' });
        expect(await requestErrorOf(guarded, settings)).toBeNull();
        expect(asked()).toEqual(['GetCallerIdentity', 'AssumeRole', 'AssumeRole']);
        const ids = sts.received.map(({ body }) => new URLSearchParams(body).get('ExternalId'));
        expect(ids).toEqual([null, expect.stringMatching(/^[0-9a-f-]{36}$/), 'project-7']);
        expect(await requestErrorOf({ ...guarded, region: 'eu-west-1' }, settings)).toBeNull();
        expect(asked().slice(3)).toEqual(['AssumeRole']);
      });

      it('refuses it if AWS accepts another external id, or its account is that of the machine', async () => {
        demandsExternalId = false;
        const own = `arn:aws:iam::${machineAccount}:role/anything`;
        for (const [role_arn, reason] of [
          [role, 'it does not demand an external id'],
          [own, 'it is of the AWS account of exportd itself'],
        ] as const)
          expect(await requestErrorOf({ ...guarded, role_arn })).toMatchObject({
            type: 'RoleNotAllowed',
            transient: false,
            owner: 'tenant',
            message: expect.stringContaining(reason),
          });
        expect(store.received).toEqual([]);
        // The owner's keys may assume whatever they may.
        expect(await requestErrorOf({ ...keys, ...guarded })).toBeNull();
      });

      it('checks it again, whatever it remembers, when a destination with it is saved', async () => {
        const settings = s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s' });
        expect(await requestErrorOf(guarded, settings)).toBeNull();
        demandsExternalId = false;
        expect(await requestErrorOf(guarded, settings)).toBeNull();
        const config = parseS3Config(
          { bucket_name: 'bucket', region: 'auto', prefix: '', ...guarded },
          settings,
        );
        expect(await roleRefusal(config, settings)).toContain('it does not demand an external id');
      });

      it('assumes roles of the listed accounts, the own one among them, if they demand an external id', async () => {
        const listed = () =>
          s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s', EXPORTD_ROLE_ACCOUNTS: machineAccount });
        const own = { ...guarded, role_arn: `arn:aws:iam::${machineAccount}:role/exports` };
        expect(await requestErrorOf(own, listed())).toBeNull();
        expect(asked()).toEqual(['AssumeRole', 'AssumeRole']);
        demandsExternalId = false;
        expect(await requestErrorOf(own, listed())).toMatchObject({ type: 'RoleNotAllowed' });
      });

      it('fails with a transient error when AWS STS does not say whose credentials they are', async () => {
        stsResponse = { status: 503, xml: errorXml('ServiceUnavailable') };
        expect(await requestErrorOf(guarded)).toMatchObject({ type: 'AssumeRoleFailed', transient: true });
        expect(store.received).toEqual([]);
      });
    });

    it('uses rotated keys of the machine without a restart', async () => {
      const profiles = join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}-credentials`);
      process.env.AWS_SHARED_CREDENTIALS_FILE = profiles;
      process.env.AWS_CONFIG_FILE = '/dev/null';
      for (const id of ['AKIABEFORE', 'AKIAAFTER']) {
        writeFileSync(profiles, `[default]\naws_access_key_id = ${id}\naws_secret_access_key = secret\n`);
        expect(await requestErrorOf({ role_arn: role })).toBeNull();
        expect(sts.received.at(-1)?.headers.authorization).toContain(`Credential=${id}/`);
      }
    });

    it('uses the renewed token of a web identity', async () => {
      const token = join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}-token`);
      process.env.AWS_WEB_IDENTITY_TOKEN_FILE = token;
      process.env.AWS_ROLE_ARN = 'arn:aws:iam::123456789012:role/exportd';
      process.env.AWS_SHARED_CREDENTIALS_FILE = '/dev/null';
      process.env.AWS_CONFIG_FILE = '/dev/null';
      for (const text of ['first-token', 'second-token']) {
        writeFileSync(token, text);
        const sent = sts.received.length;
        expect(await requestErrorOf({ role_arn: role })).toBeNull();
        const [identity, ...others] = asked().slice(sent);
        expect([identity, others.at(-1)]).toEqual(['AssumeRoleWithWebIdentity', 'AssumeRole']);
        expect(new URLSearchParams(sts.received[sent]?.body).get('WebIdentityToken')).toBe(text);
      }
    });

    it('fails permanently when the role is denied, without the message of AWS', async () => {
      stsResponse = { status: 403, xml: errorXml('AccessDenied') };
      const error = await requestErrorOf({ ...keys, role_arn: role });
      expect(error).toMatchObject({ name: 'DestinationError', type: 'AssumeRoleFailed', transient: false });
      expect((error as Error).message).toContain('could not be assumed (AccessDenied)');
      expect((error as Error).message).not.toContain(keys.aws_access_key_id);
      expect(store.received).toHaveLength(0);
    });

    it('fails with a transient error when AWS is busy or unreachable', async () => {
      stsResponse = { status: 400, xml: errorXml('Throttling') };
      expect(await requestErrorOf({ ...keys, role_arn: role })).toMatchObject({
        type: 'AssumeRoleFailed',
        transient: true,
      });
      await sts.close();
      expect(await requestErrorOf({ ...keys, role_arn: role })).toMatchObject({
        type: 'StsUnreachable',
        transient: true,
      });
    });
  });

  describe('a destination without keys and without a role', () => {
    it('never sends anything signed by the machine to a server that a user chose', async () => {
      process.env.AWS_ACCESS_KEY_ID = 'AKIAMACHINE';
      process.env.AWS_SECRET_ACCESS_KEY = 'machine-secret';
      await expect(requestErrorOf({})).rejects.toMatchObject({
        name: 'CommandRejected',
        attr: 'destination__config__aws_access_key_id',
      });
      expect([store.received, sts.received]).toEqual([[], []]);
    });
  });
});
