import type { RunSteps } from '../src/decisions/run_steps.ts';
import type { Source } from '../src/source/source.ts';

/** The encoder that an interval without rows names: it has no file. */
const noEncoder = 'none';

/**
 * Counts the rows of a run's interval and records the number. An interval without rows is finished with that: it gets
 * a generation without files, so that publishing is all that is left to do. A repeat finds what was recorded.
 * @returns how many rows have to be exported.
 */
export async function countOpenRun(
  runSteps: RunSteps,
  source: Source,
  input: { readonly run_id: string; readonly settled: boolean; readonly held_by: readonly string[] },
  signal: AbortSignal,
): Promise<number> {
  const { run_id, settled } = input;
  const { subject, records_total_count } = await runSteps.load(run_id);
  const rows =
    records_total_count ??
    (await source.countRows(
      {
        model: subject.model,
        team_id: subject.team_id,
        interval: { start: subject.data_interval_start, end: subject.data_interval_end },
      },
      signal,
    ));
  const run = await runSteps.count(run_id, { records_total_count: rows, settled });
  if (records_total_count === null && !settled)
    await runSteps.log(
      run,
      run_id,
      'WARNING',
      `Gave up waiting for open transactions of the source (${input.held_by.join(', ')}); rows that they commit later are missing from this run.`,
    );
  if (rows > 0 || run.finished) return rows;
  const reserved = run.generation > 0 ? run : await runSteps.reserveGeneration(run_id);
  await runSteps.finishExport(run_id, reserved.generation, { source_rows: 0, encoder: noEncoder });
  return 0;
}
