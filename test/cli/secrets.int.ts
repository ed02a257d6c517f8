import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { createKeyPair, createKeyRing } from '../../src/config/key_ring.ts';
import { readSettings } from '../../src/config/settings.ts';
import {
  changedConfigFields,
  mergeConfig,
  readConfig,
  storeConfig,
} from '../../src/destination/config_versions.ts';
import { destinationTestJob } from '../../src/destination/destination_test_job.ts';
import { requestJob } from '../../src/jobs/jobs.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { openWebhookSecret, sealWebhookSecret, sealWebhookUrl } from '../../src/notifications/webhooks.ts';
import { fromSetUp } from '../setup/environment.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { exportd } from './command_line.ts';
import { sealConfig } from '../../src/destination/sealed_config.ts';

const newKey = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;
const [oldKey, lostKey, key] = [newKey('old'), newKey('lost'), newKey('new')];
const settings = { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: false, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: false };
const config = {
  bucket_name: 'bucket',
  region: 'us-east-1',
  prefix: 'exports',
  aws_access_key_id: 'AKIAEXAMPLE',
  aws_secret_access_key: `secret-${randomUUID()}`,
};
const batch_export_id = randomUUID();
const webhookId = randomUUID();
const webhookSecret = createWebhookSecret();

const database = useTestDatabase();

const rotate = async (keys: string) => {
  const result = await exportd(
    { DATABASE_URL: database.url, EXPORTD_ENCRYPTION_KEYS: keys },
    'secrets',
    'rotate',
    '--json',
  );
  return { ...result, output: JSON.parse(result.stdout) as unknown };
};

const store = (owner: string, keys: string) =>
  inTransaction(database.pool, (connection) =>
    storeConfig(
      connection,
      { keyRing: createKeyRing(keys), settings },
      { batch_export_id: owner, destination_type: 'S3', config },
    ),
  );

const insertWebhook = (id: string, keys: string, urlKeys = keys) =>
  database.pool.query(
    `insert into exportd.webhooks (id, team_id, origin, sealed_url, events, secret)
     values ($1, 1, 'https://example.com', $3, '{}', $2)`,
    [
      id,
      sealWebhookSecret(createKeyRing(keys), id, webhookSecret),
      sealWebhookUrl(createKeyRing(urlKeys), id, 'https://example.com'),
    ],
  );

/** Every column with sealed secrets: how a row is stored whose secret, in this column alone, is sealed with other keys. */
const sealedColumns: Readonly<Record<string, (keys: string) => Promise<unknown>>> = {
  'destination_configs.secrets': (keys) => store(randomUUID(), keys),
  'jobs.secrets': async (keys) => {
    const target = randomUUID();
    const { secrets, ...parameters } = sealConfig({ keyRing: createKeyRing(keys), settings }, target, {
      destination_type: 'S3',
      config,
    });
    const request = { team_id: 1, user_id: 1, target, parameters, secrets };
    const deployment = { pool: database.pool, settings: readSettings({ DATABASE_URL: database.url }) };
    await requestJob(deployment, destinationTestJob, request);
  },
  'webhooks.sealed_url': (keys) => insertWebhook(randomUUID(), key, keys),
  'webhooks.secret': (keys) => insertWebhook(randomUUID(), keys, key),
};

beforeAll(async () => {
  await store(batch_export_id, oldKey);
  // The second version keeps both secrets of the first one.
  await inTransaction(database.pool, (connection) =>
    mergeConfig(
      connection,
      { keyRing: createKeyRing(oldKey), settings },
      { batch_export_id, base_version: 1, config: { prefix: 'other' } },
    ),
  );
  await insertWebhook(webhookId, oldKey);
});

describe('exportd secrets rotate', () => {
  it('encrypts every secret with the first key', async () => {
    expect(await rotate(`${key},${oldKey}`)).toMatchObject({
      code: 0,
      output: { key: 'new', rotated: 6, unreadable: [] },
    });
    const keyRing = createKeyRing(key);
    for (const [version, prefix] of [
      [1, 'exports'],
      [2, 'other'],
    ] as const)
      expect(await readConfig(database.pool, keyRing, batch_export_id, version)).toMatchObject({
        config: { ...config, prefix },
      });
    const { rows: webhooks } = await database.pool.query<{ secret: string }>(
      'select secret from exportd.webhooks',
    );
    expect(openWebhookSecret(keyRing, webhookId, webhooks[0]?.secret ?? '')).toBe(webhookSecret);
  });

  it('keeps secrets equal that versions share', async () => {
    const { rows } = await database.pool.query(
      'select distinct secrets from exportd.destination_configs where batch_export_id = $1',
      [batch_export_id],
    );
    expect(rows).toHaveLength(1);
  });

  it('changes nothing when it is repeated', async () => {
    expect(await rotate(key)).toMatchObject({ code: 0, output: { rotated: 0, unreadable: [] } });
  });

  it('names the secrets whose key is missing, and fails', async () => {
    const owner = randomUUID();
    const other = randomUUID();
    await store(owner, lostKey);
    await insertWebhook(other, lostKey);
    expect(await rotate(`${key},${oldKey}`)).toMatchObject({
      code: 1,
      output: {
        rotated: 0,
        unreadable: [
          expect.stringContaining(`aws_access_key_id of batch export ${owner}, config version 1`),
          expect.stringContaining(`aws_secret_access_key of batch export ${owner}`),
          expect.stringContaining(`the secret of webhook ${other}`),
          expect.stringContaining(`the URL of webhook ${other}`),
        ],
      },
      stderr: expect.stringContaining('4 secrets could not be decrypted'),
    });
    expect(await rotate(`${key},${lostKey}`)).toMatchObject({ code: 0, output: { rotated: 4 } });
  });
});

describe('exportd doctor', () => {
  const checkOf = async (keys: string, name: string) => {
    const { stdout } = await exportd(
      {
        DATABASE_URL: database.url,
        EXPORTD_ENCRYPTION_KEYS: keys,
        // Seconds are lost on a server that does not respond.
        TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      },
      'doctor',
      '--json',
    );
    return (JSON.parse(stdout) as { check: string }[]).find(({ check }) => check === name);
  };

  it('says how many stored secrets the keys do not open', async () => {
    expect(await checkOf(key, 'stored secrets')).toMatchObject({
      ok: true,
      detail: expect.stringContaining('all can be decrypted'),
    });
    const { ok, detail = '' } = (await checkOf(oldKey, 'stored secrets')) as {
      ok?: boolean;
      detail?: string;
    };
    expect(ok).toBe(false);
    expect(detail).toMatch(/^10 of 10 secrets cannot be decrypted: .*"new".* And 7 more\.$/);
  });

  it.each(Object.entries(sealedColumns))('opens the secrets of %s', async (_, storeWith) => {
    await storeWith(lostKey);
    expect(await checkOf(key, 'stored secrets')).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^[12] of \d+ secrets cannot be decrypted: .*"lost"/),
    });
    expect(await rotate(`${key},${lostKey}`)).toMatchObject({ code: 0, output: { unreadable: [] } });
    expect(await checkOf(key, 'stored secrets')).toMatchObject({ ok: true });
  });

  it('knows every column with secrets, and whatever seals some', async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      `select table_name || '.' || column_name as name from information_schema.columns
       where table_schema = 'exportd' and data_type in ('text', 'json', 'jsonb', 'bytea', 'ARRAY')
         and column_name ~ 'secret|sealed|encrypted|password|credential'`,
    );
    const names = rows.map(({ name }) => name);
    expect(names.toSorted()).toEqual(Object.keys(sealedColumns).toSorted());
    const source = join(import.meta.dirname, '../../src');
    const sealing = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && readFileSync(join(source, file), 'utf8').includes('.seal('),
    );
    expect(sealing.toSorted()).toEqual([
      'config/key_ring.ts',
      'destination/sealed_config.ts',
      'notifications/webhooks.ts',
    ]);
  });

  it('accepts a ring of servers, which opens none', async () => {
    const pair = createKeyPair('pair');
    const { detail = '' } = (await checkOf(key, 'stored secrets')) as { detail?: string };
    const stored = Number.parseInt(detail, 10);
    expect(stored).toBeGreaterThan(0);
    expect(await rotate(`${pair.private},${key}`)).toMatchObject({
      code: 0,
      output: { rotated: stored, unreadable: [] },
    });
    expect(await checkOf(`${pair.public},${key}`, 'encryption keys')).toMatchObject({
      ok: true,
      detail: expect.stringContaining('encrypt only'),
    });
    expect(await checkOf(`${pair.public},${key}`, 'stored secrets')).toMatchObject({
      ok: true,
      detail: `${stored} secrets, all can be decrypted, ${stored} of them by workers only`,
    });
    // And back.
    expect(await rotate(`${key},${pair.private}`)).toMatchObject({
      code: 0,
      output: { rotated: stored },
    });
  });
});

describe('a server with a public key', () => {
  it('sees that a secret is unchanged, and that another differs', async () => {
    const pair = createKeyPair('pair');
    const owner = randomUUID();
    await store(owner, `${pair.public},${key}`);
    const changed = (secrets: object) =>
      inTransaction(database.pool, (connection) =>
        changedConfigFields(
          connection,
          { keyRing: createKeyRing(`${pair.public},${key}`), settings },
          { batch_export_id: owner, base_version: 1, config: { ...config, ...secrets } },
        ),
      );
    expect(await changed({})).toEqual([]);
    expect(await changed({ aws_secret_access_key: 'another' })).toMatchObject([
      { field: 'destination.config.aws_secret_access_key', secret: true },
    ]);
  });
});

describe('exportd secrets purge', () => {
  it('removes what no run needs, such as the config of a request that was rejected', async () => {
    const purge = () => exportd({ DATABASE_URL: database.url }, 'secrets', 'purge', '--json');
    const { stdout } = await purge();
    const { removed } = JSON.parse(stdout) as { removed: number };
    expect(removed).toBeGreaterThan(0);
    const { rows } = await database.pool.query<{ left: string }>(
      `select count(*) as left from exportd.destination_configs where secrets <> '{}'`,
    );
    expect(Number(rows[0]?.left)).toBe(0);
    expect(JSON.parse((await purge()).stdout)).toEqual({ removed: 0 });
  });
});

describe('exportd secrets create', () => {
  it('prints keys for servers, which encrypt, and for workers, which decrypt, and passwords', async () => {
    const { code, stdout } = await exportd({}, 'secrets', 'create');
    const lines = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]),
    );
    const sealed = createKeyRing(lines.SERVER_ENCRYPTION_KEYS).seal('the secret', 'location');
    expect([code, createKeyRing(lines.WORKER_ENCRYPTION_KEYS).open(sealed, 'location')]).toEqual([
      0,
      'the secret',
    ]);
    const passwords = ['POSTGRES_PASSWORD', 'QUERY_ROLE_PASSWORD', 'S3_SECRET_ACCESS_KEY'].map(
      (name) => lines[name],
    );
    expect(new Set(passwords).size).toBe(3);
    // They are part of URLs.
    for (const password of passwords) expect(password).toMatch(/^[\w-]{32}$/);
    expect((await exportd({}, 'secrets', 'create')).stdout).not.toBe(stdout);
  });
});
