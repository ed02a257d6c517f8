import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { createBucket } from '../setup/bucket.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';

describe('the test setup', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it('creates a migrated database for each test', async () => {
    const { rows } = await database.pool.query<{ found: boolean }>(
      `select to_regclass('public.events') is not null and to_regclass('exportd.journal_events') is not null as found`,
    );
    expect(rows).toEqual([{ found: true }]);
  });

  it('creates a bucket for each test', async () => {
    const { client, bucket } = await createBucket();
    const put = new PutObjectCommand({ Bucket: bucket, Key: 'a/b', Body: 'x', IfNoneMatch: '*' });
    expect((await client.send(put)).$metadata.httpStatusCode).toBe(200);
    await expect(client.send(put)).rejects.toMatchObject({ name: 'PreconditionFailed' });
  });

  it('starts Temporal', () => {
    expect(fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS')).toMatch(/^127\.0\.0\.1:\d+$/);
  });
});
