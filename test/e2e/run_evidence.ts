import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import type { Client } from '@temporalio/client';
import { until } from '../setup/until.ts';
import { keysUnder } from './rows.ts';
import type { Stack } from './stack.ts';

/** What each of the four places says of a run. */
export interface RunEvidence {
  /** GET of the run, and the run among the export's `latest_runs`; null where the export is deleted. */
  readonly shown: string | null;
  readonly listed: string | null;
  /** Types of the run's events that begin or end it, in the journal's order. */
  readonly journal: readonly string[];
  /** Status of the execution in Temporal, and its search attribute, which no ending from outside can change. */
  readonly execution: string;
  readonly attribute: string;
  /** How many manifests lie below the export's prefix, and how many uploads are open there after the sweep. */
  readonly manifests: number;
  readonly uploads: number;
}

const lifecycle = [
  'RunStarted',
  'RunExportBegan',
  'RunCompleted',
  'RunFailed',
  'RunFailedRetryable',
  'RunTimedOut',
  'RunTerminated',
  'RunCancelled',
  'RunContinuedAsNew',
];

/** Asks GET, the journal, Temporal and S3 about a run, whose export is alone below its prefix. */
export async function evidenceOf(
  stack: Stack,
  client: Client,
  { exportId, runId, prefix }: { readonly exportId: string; readonly runId: string; readonly prefix: string },
): Promise<RunEvidence> {
  const run = await stack.call('GET', `/batch_exports/${exportId}/runs/${runId}/`);
  const shownExport = await stack.call('GET', `/batch_exports/${exportId}/`);
  const latest = (shownExport.body.latest_runs ?? []) as { id: string; status: string }[];
  const { rows } = await stack.pool.query<{ event_type: string }>(
    `select event_type from exportd.journal_events where stream_id = $1 and event_type = any($2) order by stream_version`,
    [runId, lifecycle],
  );
  const execution = await until(async () => {
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
    shown: run.status === 200 ? String(run.body.status) : null,
    listed:
      shownExport.status === 200 ? (latest.find(({ id }) => id === runId)?.status ?? 'not there') : null,
    journal: rows.map(({ event_type }) => event_type),
    execution: status.name,
    attribute: String(attribute),
    manifests: keys.filter((key) => key.includes('manifest')).length,
    uploads: await openUploads(stack, prefix),
  };
}

/** How many multipart uploads are open below a prefix. */
export async function openUploads({ bucket }: Pick<Stack, 'bucket'>, prefix: string): Promise<number> {
  const { Uploads = [] } = await bucket.client.send(
    new ListMultipartUploadsCommand({ Bucket: bucket.bucket, Prefix: `${prefix}/` }),
  );
  return Uploads.length;
}
