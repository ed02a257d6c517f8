import { createReport } from '../../src/local_stack/report.ts';
import { findServer } from '../../src/local_stack/servers/find_server.ts';
import { objectStoreServer } from '../../src/local_stack/servers/object_store.ts';
import { temporalServer } from '../../src/local_stack/servers/temporal.ts';
import { chromiumPath } from './programs.ts';

// Brings what `npm test` needs beside the packages, once per machine. What is out of reach ends the run here, before the first
// test, and not with a failure of each test that needs it.

const report = createReport();
const brought = await Promise.allSettled([
  findServer(temporalServer, report),
  findServer(objectStoreServer, report),
  chromiumPath(report),
]);
for (const result of brought)
  if (result.status === 'rejected') {
    process.stderr.write(`exportd: ${(result.reason as Error).message}\n`);
    process.exitCode = 1;
  }
