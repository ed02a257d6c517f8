import { randomBytes, randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { mergeConfig, readConfig, storeConfig } from '../../src/destination/config_versions.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { openWebhookSecret, sealWebhookSecret } from '../../src/notifications/webhooks.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { exportd } from './command_line.ts';

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

const insertWebhook = (id: string, keys: string) =>
  database.pool.query(
    `insert into exportd.webhooks (id, team_id, url, events, secret) values ($1, 1, 'https://example.com', '{}', $2)`,
    [id, sealWebhookSecret(createKeyRing(keys), id, webhookSecret)],
  );

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
      output: { key: 'new', rotated: 5, unreadable: [] },
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
          expect.stringContaining(`webhook ${other}`),
        ],
      },
      stderr: expect.stringContaining('3 secrets could not be decrypted'),
    });
    expect(await rotate(`${key},${lostKey}`)).toMatchObject({ code: 0, output: { rotated: 3 } });
  });
});
