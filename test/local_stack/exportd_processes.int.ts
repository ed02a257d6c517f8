import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, it } from '@jest/globals';
import { createChildProcesses } from '../../src/local_stack/child_processes.ts';
import { startExportd } from '../../src/local_stack/exportd_processes.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { temporaryFolder } from './data_folder.ts';

const children = createChildProcesses(temporaryFolder());
// Responds like the server of another stack, which took the port after it was found free.
const other = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ status: 'ok', database: 'ok', temporal: 'ok', pid: process.pid }));
});
let database: TestDatabase | undefined;

afterAll(async () => {
  await children.stopAll();
  other.closeAllConnections();
  other.close();
  await database?.drop();
});

it('is not ready when another server uses its port', async () => {
  database = await createTestDatabase();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const port = (other.address() as AddressInfo).port;
  const started = startExportd(
    children,
    {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      EXPORTD_TASK_QUEUE_PREFIX: 'another-server-at-the-port',
      EXPORTD_PORT: String(port),
      EXPORTD_ENCRYPTION_KEYS: `main:${Buffer.alloc(32, 1).toString('base64')}`,
    },
    `http://127.0.0.1:${port}`,
  );
  await expect(started).rejects.toThrow(`Port ${port} on 127.0.0.1 is in use`);
});
