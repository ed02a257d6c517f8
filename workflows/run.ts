import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  makeContinueAsNewFunc,
  patched,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { AppendActivities } from '../activities/schedule.ts';
import type { CountedRows } from '../src/export/count_rows.ts';
import type { ContinuedRun } from '../src/decisions/continue_run.ts';
import type { BarrierLook } from '../src/source/source.ts';
import { exportRanges, type ExportActivities } from './export_ranges.ts';
import { isRunInput, type RunInput } from '../src/contract/workflow_inputs.ts';
import { barrierPollMs, exportPolicy, recordingPolicy, sourcePolicy } from './policies.ts';
import { endingOf } from './run_ending.ts';
import { searchAttributes } from './search_attributes.ts';

const recording = proxyLocalActivities<AppendActivities>(recordingPolicy);

/**
 * Exports one interval: waits until the source has settled, counts, exports, publishes. What a step records is decided
 * in the journal; a run that has a terminal status there ends here without another word. A failed or cancelled run
 * fails or cancels its execution too, so that the Temporal UI shows the same as exportd does. An export of very many
 * parts is handed over to a fresh execution, and a fresh row, from time to time.
 */
export async function batchExportRun(input: RunInput): Promise<void> {
  // May have been started by hand with anything.
  if (!isRunInput(input))
    throw ApplicationFailure.nonRetryable('The input has to name a run and its limits.', 'InvalidInput');
  let { run_id } = input;
  let continued: ContinuedRun | undefined;
  let failure: unknown;
  let ending: ReturnType<typeof endingOf>;
  try {
    continued = await exportInterval(input);
    // From here on the row is the next one, so a cancellation that came meanwhile is that one's.
    run_id = continued?.run_id ?? run_id;
    if (continued && CancellationScope.current().consideredCancelled)
      throw new CancelledFailure('Cancelled while it was handed over.');
  } catch (error) {
    failure = error;
    ending = endingOf(error);
    if (ending === undefined) throw error;
  }
  if (continued && ending === undefined) return goOnAs(continued, input);
  const { status, latest_error } = await CancellationScope.nonCancellable(async () => {
    if (ending !== undefined && ending !== 'quiet') await recording.recordEnding({ run_id, ...ending });
    return recording.reportEnding({ run_id });
  });
  showStatus(status, latest_error === null ? status : `${status}: ${latest_error}`);
  if (ending === undefined || ending === 'quiet' || ending.status !== status) return;
  throw status === 'Cancelled' ? failure : ApplicationFailure.nonRetryable(ending.latest_error, status);
}

/** Exports and publishes; the answer is the run to go on with when rows are left. */
async function exportInterval(input: RunInput): Promise<ContinuedRun | undefined> {
  const { run_id } = input;
  const source = proxyLocalActivities<AppendActivities>(sourcePolicy(input.limits));
  const data = proxyActivities<ExportActivities>(exportPolicy(input));
  const { rows, ranges, publish_empty } =
    input.rows === undefined
      ? await countSettledRows(source, input)
      : { rows: input.rows, ranges: input.ranges ?? 1, publish_empty: false };
  if (rows > 0) {
    showStatus('Running', `Exporting ${rows} rows${ranges > 1 ? ` in ${ranges} ranges` : ''}`);
    const finished = ranges > 1 ? await exportRanges(data, run_id, ranges) : await exportWhole(data, run_id);
    if (!finished) return CancellationScope.nonCancellable(() => recording.continueRun({ run_id }));
  }
  setCurrentDetails(`Publishing the manifest of ${rows} rows`);
  // The journal says whether publishing may begin; once it may, a cancellation comes too late.
  await CancellationScope.nonCancellable(async () => {
    if (publish_empty === true && (await recording.publishEmpty({ run_id })).published) return;
    await data.publishManifest({ run_id });
  });
  return undefined;
}

/** Exports an interval that is not cut; false when the parts of one execution were sent and rows are left. */
async function exportWhole(data: Pick<ExportActivities, 'exportInterval'>, run_id: string): Promise<boolean> {
  const { finished } = (await data.exportInterval({ run_id })) as { finished?: boolean };
  // Executions of earlier versions do not say so; theirs always finished.
  return finished !== false;
}

/** Replaces this execution by a fresh one of the same workflow id. Whose it is stands in its memo. */
function goOnAs({ run_id, rows, ranges }: ContinuedRun, input: RunInput): Promise<never> {
  if (patched('status of a closed row')) showStatus('ContinuedAsNew', 'Handed over to a fresh execution');
  const { memo, typedSearchAttributes } = workflowInfo();
  const goOn = makeContinueAsNewFunc<typeof batchExportRun>({
    memo: { ...memo, run_id },
    typedSearchAttributes: typedSearchAttributes.updateCopy([
      { key: searchAttributes.run, value: run_id },
      { key: searchAttributes.status, value: 'Starting' },
    ]),
  });
  return goOn({ ...input, run_id, rows, ranges });
}

async function countSettledRows(
  source: Pick<AppendActivities, 'lookForOpenTransactions' | 'countRows'>,
  input: RunInput,
): Promise<CountedRows> {
  const { settled, held_by, counted: found } = await waitForTransactions(source, input);
  // Looks of earlier versions did not count.
  const counted: Omit<CountedRows, 'ranges'> & { ranges?: number } =
    found ?? (await source.countRows({ run_id: input.run_id, settled, held_by }));
  // Executions of earlier versions know no ranges.
  return { ...counted, ranges: counted.ranges ?? 1 };
}

/** Waits until no open transaction of the source can add to the interval any more, or for as long as is allowed. */
async function waitForTransactions(
  source: Pick<AppendActivities, 'lookForOpenTransactions'>,
  { run_id, limits }: RunInput,
): Promise<{ settled: boolean; held_by: readonly string[]; counted?: CountedRows | undefined }> {
  setCurrentDetails('Waiting for the source to settle');
  let look: BarrierLook & { readonly counted?: CountedRows } = {
    state: { phase: 'settling' },
    wait_ms: 0,
    held_by: [],
  };
  let waitingSince: number | undefined;
  for (;;) {
    look = await source.lookForOpenTransactions({ run_id, state: look.state });
    if (look.state.phase === 'open') return { settled: true, held_by: [], counted: look.counted };
    // Time in a workflow is Temporal's, the same in every replay.
    if (look.state.phase !== 'settling') waitingSince ??= Date.now();
    const waited = waitingSince === undefined ? 0 : Date.now() - waitingSince;
    if (waitingSince !== undefined && waited >= limits.settle_max_ms)
      return { settled: false, held_by: look.held_by };
    if (look.held_by.length > 0) setCurrentDetails(`Waiting for ${look.held_by.join(', ')}`);
    await sleep(Math.max(1, barrierPollMs(look.wait_ms, waited)));
  }
}

function showStatus(status: string, details: string): void {
  upsertSearchAttributes([{ key: searchAttributes.status, value: status }]);
  setCurrentDetails(details);
}
