import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it, jest } from '@jest/globals';
import { createKeyRing, SecretUnreadable } from '../../src/config/key_ring.ts';
import {
  ConfigVersionNotFound,
  createSelectionReader,
  mergeConfig,
  readConfig,
  readPublicConfig,
  storeConfig,
} from '../../src/destination/config_versions.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

describe('stored configs', () => {
  const newKeyRing = () => createKeyRing(`main:${randomBytes(32).toString('base64')}`);
  const keyRing = newKeyRing();
  const settings = { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: false, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: true };
  const keyId = `id-${randomUUID()}`;
  const secret = `secret-${randomUUID()}`;
  const given = {
    bucket_name: 'bucket',
    region: 'us-east-1',
    prefix: 'exports',
    aws_access_key_id: keyId,
    aws_secret_access_key: secret,
  };

  const database = useTestDatabase();

  const store = (batch_export_id: string, config: unknown = given) =>
    inTransaction(database.pool, (connection) =>
      storeConfig(connection, { keyRing, settings }, { batch_export_id, destination_type: 'S3', config }),
    );
  const merge = (
    batch_export_id: string,
    base_version: number,
    config: Record<string, unknown>,
    ring = keyRing,
  ) =>
    inTransaction(database.pool, (connection) =>
      mergeConfig(connection, { keyRing: ring, settings }, { batch_export_id, base_version, config }),
    );

  it('return everything except secrets, which are encrypted at rest', async () => {
    const id = randomUUID();
    expect(await store(id)).toBe(1);
    const shown = await readPublicConfig(database.pool, id, 1);
    expect(shown).toMatchObject({
      destination_type: 'S3',
      config: { bucket_name: 'bucket', compression: null },
    });
    const { rows } = await database.pool.query('select * from exportd.destination_configs');
    for (const text of [JSON.stringify(shown), JSON.stringify(rows)])
      for (const planted of [keyId, secret, Buffer.from(secret).toString('base64')])
        expect(text).not.toContain(planted);
    expect(await readConfig(database.pool, keyRing, id, 1)).toMatchObject({ config: given });
  });

  it('are merged into a new version; omitted secrets are kept without being decrypted', async () => {
    const id = randomUUID();
    await store(id);
    const stranger = newKeyRing();
    expect(await merge(id, 1, { prefix: 'other', compression: 'gzip' }, stranger)).toBe(2);
    expect(await readConfig(database.pool, keyRing, id, 2)).toMatchObject({
      config: { ...given, prefix: 'other', compression: 'gzip' },
    });
    expect(await merge(id, 2, { aws_secret_access_key: 'changed', compression: null })).toBe(3);
    expect(await readConfig(database.pool, keyRing, id, 3)).toMatchObject({
      config: {
        aws_access_key_id: keyId,
        aws_secret_access_key: 'changed',
        prefix: 'other',
        compression: null,
      },
    });
    expect(await readPublicConfig(database.pool, id, 1)).toMatchObject({ config: { prefix: 'exports' } });
  });

  it('require the secrets again for another server', async () => {
    const id = randomUUID();
    await store(id, { ...given, endpoint_url: 'https://s3.example.com' });
    const endpoint_url = 'https://elsewhere.example.com';
    await expect(merge(id, 1, { endpoint_url })).rejects.toMatchObject({
      attr: 'destination__config__aws_access_key_id',
    });
    const keys = { aws_access_key_id: keyId, aws_secret_access_key: secret };
    expect(await merge(id, 1, { endpoint_url, ...keys })).toBe(2);
    expect(await merge(id, 2, { endpoint_url: 'https://elsewhere.example.com/' })).toBe(3);
  });

  it.each([
    ['scheme', 'http://s3.example.com'],
    ['port', 'https://s3.example.com:8443'],
    ['path', 'https://s3.example.com/store'],
  ])('require the secrets again for another %s', async (_, endpoint_url) => {
    const id = randomUUID();
    await store(id, { ...given, endpoint_url: 'https://s3.example.com' });
    await expect(merge(id, 1, { endpoint_url })).rejects.toMatchObject({
      attr: 'destination__config__aws_access_key_id',
    });
  });

  it('can only reset both credentials together', async () => {
    const id = randomUUID();
    await store(id);
    await expect(merge(id, 1, { aws_access_key_id: null })).rejects.toMatchObject({
      attr: 'destination__config__aws_access_key_id',
    });
    const version = await merge(id, 1, { aws_access_key_id: null, aws_secret_access_key: null });
    const { config } = await readConfig(database.pool, keyRing, id, version);
    expect(config).not.toHaveProperty('aws_access_key_id');
  });

  it('reject an invalid merge with the field, and never repeat a secret', async () => {
    const id = randomUUID();
    await store(id);
    await expect(merge(id, 1, { hello: 1 })).rejects.toMatchObject({ attr: 'destination__config__hello' });
    const wrong = { ...given, aws_secret_access_key: [secret] };
    await expect(store(id, wrong)).rejects.not.toThrow(secret);
  });

  it('get consecutive numbers from concurrent writers', async () => {
    const id = randomUUID();
    const versions = await Promise.all([store(id), store(id), store(id)]);
    expect(versions.toSorted()).toEqual([1, 2, 3]);
  });

  it('cannot be decrypted for another export; a missing version is ConfigVersionNotFound', async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    await store(id);
    await database.pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, secrets)
       select $2, version, destination_type, config, secrets from exportd.destination_configs where batch_export_id = $1`,
      [id, other],
    );
    await expect(readConfig(database.pool, keyRing, other, 1)).rejects.toThrow(SecretUnreadable);
    await expect(readPublicConfig(database.pool, id, 9)).rejects.toThrow(ConfigVersionNotFound);
  });
});

describe('row selections', () => {
  const database = useTestDatabase();

  it('are read once per process and config version', async () => {
    const batch_export_id = randomUUID();
    for (const [version, event] of ['one', 'two'].entries())
      await database.pool.query(
        `insert into exportd.destination_configs (batch_export_id, version, destination_type, config)
       values ($1, $2, 'S3', $3)`,
        [batch_export_id, version + 1, { include_events: [event] }],
      );
    const selectionOf = createSelectionReader(database.pool);
    const query = jest.spyOn(database.pool, 'query');
    const first = await selectionOf({ batch_export_id, config_version: 1 });
    expect(await selectionOf({ batch_export_id, config_version: 1 })).toEqual(first);
    expect(query).toHaveBeenCalledTimes(1);
    expect(await selectionOf({ batch_export_id, config_version: 2 })).not.toEqual(first);
    query.mockRestore();
  });
});
