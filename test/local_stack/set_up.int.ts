import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { createBucket } from '../setup/bucket.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';

describe('the servers of the tests', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it('gives each test a migrated database', async () => {
    const { rows } = await database.pool.query<{ found: boolean }>(
      `select to_regclass('public.events') is not null and to_regclass('exportd.journal_events') is not null as found`,
    );
    expect(rows).toEqual([{ found: true }]);
  });

  it('gives each test a bucket', async () => {
    const { client, bucket } = await createBucket();
    const put = new PutObjectCommand({ Bucket: bucket, Key: 'a/b', Body: 'x', IfNoneMatch: '*' });
    expect((await client.send(put)).$metadata.httpStatusCode).toBe(200);
    await expect(client.send(put)).rejects.toMatchObject({ name: 'PreconditionFailed' });
  });

  it('names Temporal', () => {
    expect(fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS')).toMatch(/^127\.0\.0\.1:\d+$/);
  });
});
