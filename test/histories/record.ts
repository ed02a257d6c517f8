import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Records the history of an execution for the replay test, e.g. from a running demo, with the `temporal` command line
 * tool (TEMPORAL_CLI says where it is, when it is not on the path; the SDK's own conversion to JSON fails in 1.24.0):
 *
 *   TEMPORAL_ADDRESS=127.0.0.1:7233 node test/histories/record.ts run-completed-0.1.0 batch-export-… [run id]
 *
 * The name says what the execution went through and which version of exportd made it. A file once committed is never
 * changed: it stands for executions that are out there.
 */
function record(name: string, workflowId: string, runId?: string): void {
  const target = ['--workflow-id', workflowId, ...(runId === undefined ? [] : ['--run-id', runId])];
  const address = process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233';
  const history = execFileSync(
    process.env.TEMPORAL_CLI ?? 'temporal',
    ['workflow', 'show', '--output', 'json', '--address', address, ...target],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  writeFileSync(join(import.meta.dirname, `${name}.json`), history);
}

const [name, workflowId, runId] = process.argv.slice(2);
if (name === undefined || workflowId === undefined)
  throw new Error('Usage: record.ts <name> <workflow id> [<run id>]');
record(name, workflowId, runId);
