import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openFacade, type Facade } from '../http/facade.ts';

const main = join(import.meta.dirname, '../../src/cli/main.ts');
let facade: Facade;
beforeAll(async () => {
  facade = await openFacade({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true' });
});
afterAll(() => facade.close());

it('prints all to who reads slowly', async () => {
  const id = await facade.createExport();
  await facade.database.pool.query(
    `insert into exportd.log_lines (team_id, batch_export_id, level, message)
     select $1, $2, 'INFO', repeat('x', 2000) from generate_series(1, 1000)`,
    [facade.projectId, id],
  );
  const command = spawn(process.execPath, [main, 'export', 'logs', id, '--limit', '1000'], {
    env: {
      EXPORTD_DATA_DIR: join(import.meta.dirname, 'no-stack'),
      EXPORTD_BASE_URL: await facade.listen(),
      EXPORTD_API_KEY: facade.key,
    },
  });
  // More than the kernel holds for a reader is waiting by the time that anything is read.
  await new Promise((resolve) => command.stdout.once('readable', resolve));
  const ended = new Promise((resolve) => command.once('close', resolve));
  const printed = await text(command.stdout);
  expect([await ended, printed.split('\n').filter((line) => line.endsWith('x')).length]).toEqual([0, 1000]);
});
