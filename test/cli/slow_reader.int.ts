import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { fromSetUp } from '../setup/environment.ts';

const main = join(import.meta.dirname, '../../src/cli/main.ts');
let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true' });
});
afterAll(() => api.close());

it('prints all output to a slow reader', async () => {
  const id = await api.createExport();
  await api.database.pool.query(
    `insert into exportd.log_lines (team_id, batch_export_id, level, message)
     select $1, $2, 'INFO', repeat('x', 2000) from generate_series(1, 1000)`,
    [api.projectId, id],
  );
  const command = spawn(process.execPath, [main, 'export', 'logs', id, '--limit', '1000'], {
    env: {
      NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
      EXPORTD_DATA_DIR: join(import.meta.dirname, 'no-stack'),
      EXPORTD_BASE_URL: await api.listen(),
      EXPORTD_API_KEY: api.key,
    },
  });
  // By now, more output is pending than the pipe buffer holds.
  await new Promise((resolve) => command.stdout.once('readable', resolve));
  const exited = new Promise((resolve) => command.once('close', resolve));
  const printed = await text(command.stdout);
  expect([await exited, printed.split('\n').filter((line) => line.endsWith('x')).length]).toEqual([0, 1000]);
});
