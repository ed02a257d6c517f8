import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import type { Client } from '@temporalio/client';
import { endEvents } from '../model/journal_invariants.ts';
import { waitFor } from '../setup/wait_for.ts';
import { keysUnder } from './rows.ts';
import type { Stack } from './stack.ts';
import { readEvents } from '../journal/read_stream.ts';

/** The state of a run as seen through the API, the journal, Temporal and S3. */
export interface RunViews {
  /** The status from a GET of the run and from the export's `latest_runs`; null when the export is deleted. */
  readonly retrieved: string | null;
  readonly listed: string | null;
  /** The types of the events that start or end the run, in journal order. */
  readonly journal: readonly string[];
  /** The status of the Temporal execution, and its search attribute, which a termination does not update. */
  readonly execution: string;
  readonly attribute: string;
  /** The number of manifests, and of open uploads, below the export's prefix. */
  readonly manifests: number;
  readonly uploads: number;
}

const lifecycle = ['RunCreated', 'RunExportStarted', ...endEvents];

/** Reads a run from the API, the journal, Temporal and S3. No other export may use its prefix. */
export async function runViewsOf(
  stack: Stack,
  client: Client,
  { exportId, runId, prefix }: { readonly exportId: string; readonly runId: string; readonly prefix: string },
): Promise<RunViews> {
  const run = await stack.call('GET', `/batch_exports/${exportId}/runs/${runId}/`);
  const exportResponse = await stack.call('GET', `/batch_exports/${exportId}/`);
  const latest = (exportResponse.body.latest_runs ?? []) as { id: string; status: string }[];
  const events = await readEvents(stack.pool, runId, ...lifecycle);
  const execution = await waitFor(async () => {
    for await (const found of client.workflow.list({ query: `ExportdRun = "${runId}"` })) return found;
    return undefined;
  }, 'the execution of the run is listed');
  const { status, typedSearchAttributes } = await client.workflow
    .getHandle(execution.workflowId, execution.runId)
    .describe();
  const attributes = typedSearchAttributes.getAll();
  const attribute = attributes.find(({ key }) => key.name === 'ExportdStatus')?.value;
  const keys = await keysUnder(stack.bucket, `${prefix}/`);
  return {
    retrieved: run.status === 200 ? String(run.body.status) : null,
    listed:
      exportResponse.status === 200 ? (latest.find(({ id }) => id === runId)?.status ?? 'not listed') : null,
    journal: events.map(({ type }) => type),
    execution: status.name,
    attribute: String(attribute),
    manifests: keys.filter((key) => key.includes('manifest')).length,
    uploads: await openUploads(stack, prefix),
  };
}

/** The number of open multipart uploads below a prefix. */
export async function openUploads({ bucket }: Pick<Stack, 'bucket'>, prefix: string): Promise<number> {
  const { Uploads = [] } = await bucket.client.send(
    new ListMultipartUploadsCommand({ Bucket: bucket.bucket, Prefix: `${prefix}/` }),
  );
  return Uploads.length;
}
