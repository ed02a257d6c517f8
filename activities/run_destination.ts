import type { Destination, DestinationFault } from '../src/destination/destination.ts';
import type { OpenedRun } from '../src/domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';

/** Opens the run's destination for one activity; waits for it are told to the export's log, each kind once. */
export async function withDestination<Result>(
  { runSteps, openDestination, logger }: Pick<ExportDependencies, 'runSteps' | 'openDestination' | 'logger'>,
  runId: string,
  run: OpenedRun,
  work: (destination: Destination) => Promise<Result>,
): Promise<Result> {
  const told = new Set<string>();
  const onFault = ({ type, message, transient }: DestinationFault): void => {
    if (told.has(type)) return;
    told.add(type);
    runSteps
      .log(run, runId, 'WARNING', transient ? `${message} Trying again.` : message)
      .catch(() => logger.warn({ run_id: runId }, 'A line of the log of an export could not be written.'));
  };
  const destination = await openDestination(run.subject, onFault);
  try {
    return await work(destination);
  } finally {
    destination.close();
  }
}
