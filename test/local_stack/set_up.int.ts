import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { Connection } from '@temporalio/client';
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

  it('starts Temporal, whose list of executions keeps the indexes of a local stack only', async () => {
    const database = new DatabaseSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'temporal.db'), {
      readOnly: true,
    });
    const indexes = database
      .prepare(
        `select name from sqlite_schema where tbl_name = 'executions_visibility' and type = 'index' and sql is not null`,
      )
      .all();
    database.close();
    expect(indexes).toHaveLength(13);

    const connection = await Connection.connect({ address: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS') });
    const { executions } = await connection.workflowService.listWorkflowExecutions({
      namespace: 'default',
      query: `WorkflowId = '${randomUUID()}' AND ExecutionDuration > 1 AND ParentWorkflowId IS NULL`,
    });
    await connection.close();
    expect(executions).toEqual([]);
  });
});
