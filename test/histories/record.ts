import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { readSettings } from '../../src/config/settings.ts';
import { createClient } from '../../src/temporal/connections.ts';

/**
 * Records the history of an execution for the replay test, e.g. from a running demo:
 *
 *   TEMPORAL_ADDRESS=127.0.0.1:7233 node test/histories/record.ts run-completed-0.1.0 batch-export-… [run id]
 *
 * The name says what the execution went through and which version of exportd made it. A file once committed is never
 * changed: it stands for executions that are out there.
 */
async function record(name: string, workflowId: string, runId?: string): Promise<void> {
  const { client, close } = createClient(readSettings({ DATABASE_URL: 'unused', ...process.env }));
  const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  writeFileSync(join(import.meta.dirname, `${name}.json`), `${historyToJSON(history)}\n`);
  await close();
}

const [name, workflowId, runId] = process.argv.slice(2);
if (name === undefined || workflowId === undefined)
  throw new Error('Usage: record.ts <name> <workflow id> [<run id>]');
await record(name, workflowId, runId);
