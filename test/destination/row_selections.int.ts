import { randomUUID } from 'node:crypto';
import { expect, it, jest } from '@jest/globals';
import { createSelectionReader } from '../../src/destination/config_versions.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const database = useTestDatabase();

it('a config version is read once per process', async () => {
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
  expect(await selectionOf({ batch_export_id, config_version: 1 })).toBe(first);
  expect(query).toHaveBeenCalledTimes(1);
  expect(await selectionOf({ batch_export_id, config_version: 2 })).not.toEqual(first);
  query.mockRestore();
});
