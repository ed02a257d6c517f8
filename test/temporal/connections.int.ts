import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings, SettingsError } from '../../src/config/settings.ts';
import { connectWorkers, createClient, describeConnection } from '../../src/temporal/connections.ts';
import { describeProblem } from '../../src/temporal/problems.ts';
import { createCertificateAuthority } from '../setup/certificates.ts';
import { fromSetUp } from '../setup/environment.ts';
import {
  createTemporalProxy,
  requireApiKey,
  type ProxyTls,
  type TemporalProxy,
} from '../setup/temporal_proxy.ts';

type Environment = Readonly<Record<string, string>>;

const authority = createCertificateAuthority();
const stranger = createCertificateAuthority('a stranger');
const client = authority.issue('exportd');
const strangeClient = stranger.issue('stranger');
const tls: ProxyTls = { server: authority.issue('temporal.test', '127.0.0.1') };
const mutualTls: ProxyTls = { ...tls, clientAuthority: authority.certificate };
const apiKey = randomUUID();

/** Writes a file of the test and returns its path. */
const write = (name: string, text: string): string => {
  const path = join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}-${name}`);
  writeFileSync(path, text);
  return path;
};

const withCa = { TEMPORAL_TLS_SERVER_CA_CERT_PATH: write('ca.pem', authority.certificate) };
const withCertificate = {
  ...withCa,
  TEMPORAL_TLS_CLIENT_CERT_PATH: write('client.pem', client.certificate),
  TEMPORAL_TLS_CLIENT_KEY_PATH: write('client.key', client.key),
};

let plainProxy: TemporalProxy;
let tlsProxy: TemporalProxy;
let mutualProxy: TemporalProxy;

beforeAll(async () => {
  const target = fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS');
  [plainProxy, tlsProxy, mutualProxy] = await Promise.all([
    createTemporalProxy(target),
    createTemporalProxy(target, tls),
    createTemporalProxy(target, mutualTls),
  ]);
  tlsProxy.check(requireApiKey(apiKey));
});
afterAll(() => Promise.all([plainProxy, tlsProxy, mutualProxy].map((proxy) => proxy.close())));

const settingsOf = (environment: Environment) =>
  readSettings({ DATABASE_URL: 'unused', EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '10s', ...environment });

/** Sends a request as a client, and connects as a worker. */
async function useTemporal(environment: Environment): Promise<void> {
  const settings = settingsOf(environment);
  const connected = await createClient(settings);
  try {
    await connected.client.workflow.count();
  } finally {
    await connected.close();
  }
  const connection = await connectWorkers(settings);
  await connection.close();
}

describe('clients and workers connect', () => {
  it('with TLS and an API key', async () => {
    const environment = { ...withCa, TEMPORAL_API_KEY: apiKey, TEMPORAL_ADDRESS: tlsProxy.address };
    await useTemporal(environment);
    expect(tlsProxy.calls.map(({ headers }) => headers.authorization)).toContain(`Bearer ${apiKey}`);
    expect(describeConnection(settingsOf(environment))).toBe(
      `${tlsProxy.address}, namespace default, TLS, API key`,
    );
  });

  it('with mTLS, from files or from text', async () => {
    const address = { TEMPORAL_ADDRESS: mutualProxy.address };
    const texts = {
      TEMPORAL_TLS_SERVER_CA_CERT_DATA: authority.certificate,
      TEMPORAL_TLS_CLIENT_CERT_DATA: client.certificate,
      TEMPORAL_TLS_CLIENT_KEY_DATA: client.key,
    };
    for (const environment of [withCertificate, texts]) await useTemporal({ ...address, ...environment });
    expect(describeConnection(settingsOf({ ...address, ...texts }))).toMatch(/mTLS$/);
  });

  it('with the profile of a file, whose address and headers they use', async () => {
    const file = write(
      'temporal.toml',
      [
        '[profile.default]\naddress = "127.0.0.1:1"',
        `[profile.cloud]\naddress = "${mutualProxy.address}"\nnamespace = "default"`,
        '[profile.cloud.tls]\nserver_name = "temporal.test"',
        ...Object.entries(withCertificate).map(
          ([name, path]) => `${name.slice('TEMPORAL_TLS_'.length).toLowerCase()} = "${path}"`,
        ),
        '[profile.cloud.grpc_meta]\nx_of_the_file = "seen"',
      ].join('\n'),
    );
    const profile = { TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'cloud' };
    await useTemporal(profile);
    expect(mutualProxy.calls.at(-1)?.headers['x-of-the-file']).toBe('seen');
    expect(settingsOf(profile).TEMPORAL_ADDRESS).toBe(mutualProxy.address);
    // The environment overrides the file.
    expect(settingsOf({ ...profile, TEMPORAL_NAMESPACE: 'other' }).TEMPORAL_NAMESPACE).toBe('other');
  });
});

describe('a problem with Temporal says what to change', () => {
  /** For requests that get a response: on a busy machine a late one must not become another problem. */
  const untilResponse = { EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '60s' };
  /** The problem that a client has. The client retries connections that fail until the request times out. */
  async function problemOf(environment: Environment) {
    const settings = settingsOf({ EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '500ms', ...environment });
    const connected = await createClient(settings);
    try {
      const error: unknown = await connected.client.workflow.count().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error === undefined) throw new Error('There is no problem.');
      return await describeProblem(error, settings);
    } finally {
      await connected.close();
    }
  }

  it.each<[string, () => Environment, object]>([
    [
      'an unknown issuer',
      () => ({ TEMPORAL_TLS: 'true', TEMPORAL_ADDRESS: tlsProxy.address }),
      {
        type: 'TemporalTlsError',
        owner: 'operator',
        message: expect.stringMatching(/TEMPORAL_TLS_SERVER_CA_CERT_PATH/),
      },
    ],
    [
      'another name',
      () => ({ ...withCa, TEMPORAL_TLS_SERVER_NAME: 'other.test', TEMPORAL_ADDRESS: tlsProxy.address }),
      {
        type: 'TemporalTlsError',
        owner: 'operator',
        message: expect.stringMatching(/TEMPORAL_TLS_SERVER_NAME/),
      },
    ],
    [
      'no client certificate',
      () => ({ ...withCa, TEMPORAL_ADDRESS: mutualProxy.address }),
      {
        type: 'TemporalTlsError',
        owner: 'operator',
        message: expect.stringMatching(/certificate and key of exportd/),
      },
    ],
    [
      'the certificate of a stranger',
      () => ({
        ...withCa,
        TEMPORAL_TLS_CLIENT_CERT_DATA: strangeClient.certificate,
        TEMPORAL_TLS_CLIENT_KEY_DATA: strangeClient.key,
        TEMPORAL_ADDRESS: mutualProxy.address,
      }),
      { type: 'TemporalTlsError', owner: 'operator' },
    ],
    [
      'TLS to a server without it',
      () => ({ TEMPORAL_TLS: 'true', TEMPORAL_ADDRESS: plainProxy.address }),
      { type: 'TemporalTlsError', owner: 'operator' },
    ],
    [
      'no TLS to a server that has it',
      () => ({ TEMPORAL_ADDRESS: tlsProxy.address }),
      { type: 'TemporalTlsError', owner: 'operator', message: expect.stringMatching(/TEMPORAL_TLS=true/) },
    ],
    [
      'a wrong API key',
      () => ({
        ...withCa,
        ...untilResponse,
        TEMPORAL_API_KEY: 'another',
        TEMPORAL_ADDRESS: tlsProxy.address,
      }),
      {
        type: 'TemporalUnauthenticated',
        owner: 'operator',
        message: expect.stringMatching(/TEMPORAL_API_KEY/),
      },
    ],
    [
      'an unknown namespace',
      () => ({ ...untilResponse, TEMPORAL_NAMESPACE: 'nowhere', TEMPORAL_ADDRESS: plainProxy.address }),
      {
        type: 'TemporalNamespaceNotFound',
        owner: 'operator',
        message: expect.stringMatching(/TEMPORAL_NAMESPACE/),
      },
    ],
    [
      'an unknown host',
      () => ({ TEMPORAL_ADDRESS: 'temporal.invalid:7233' }),
      { type: 'TemporalHostNotFound', owner: 'operator', message: expect.stringMatching(/TEMPORAL_ADDRESS/) },
    ],
    [
      'no server',
      () => ({ TEMPORAL_ADDRESS: '127.0.0.1:1' }),
      { type: 'TemporalUnavailable', owner: 'none', message: expect.stringMatching(/ECONNREFUSED/) },
    ],
  ])('%s', async (_, environment, expected) => {
    expect(await problemOf(environment())).toEqual(expect.objectContaining(expected));
  });
});

it.each<[string, Environment, string]>([
  ['text that is no certificate', { TEMPORAL_TLS_SERVER_CA_CERT_DATA: 'nonsense' }, 'cannot be used'],
  [
    'the key of another certificate',
    { TEMPORAL_TLS_CLIENT_CERT_DATA: client.certificate, TEMPORAL_TLS_CLIENT_KEY_DATA: strangeClient.key },
    'key values mismatch',
  ],
  ['a file that does not exist', { TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/nowhere/ca.pem' }, '/nowhere/ca.pem'],
])('a client rejects %s at once', async (_, environment, message) => {
  const settings = settingsOf({ TEMPORAL_ADDRESS: plainProxy.address, ...environment });
  await expect(createClient(settings)).rejects.toThrow(SettingsError);
  await expect(createClient(settings)).rejects.toThrow(message);
});
