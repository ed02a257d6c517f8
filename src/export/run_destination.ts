import type { Destination, DestinationError } from '../destination/destination.ts';
import type { ExistingRun } from '../domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';

/** Opens the run's destination for one activity; waits for it are told to the export's log, each kind once. */
export async function withDestination<Result>(
  { recorder, openDestination, logger }: Pick<ExportDependencies, 'recorder' | 'openDestination' | 'logger'>,
  runId: string,
  run: ExistingRun,
  work: (destination: Destination) => Promise<Result>,
): Promise<Result> {
  const told = new Set<string>();
  const onFault = ({ type, message, transient }: DestinationError): void => {
    if (told.has(type)) return;
    told.add(type);
    recorder
      .log(run, runId, 'WARNING', transient ? `${message} Trying again.` : message)
      .catch(() => logger.warn({ run_id: runId }, 'A line of the log of an export could not be written.'));
  };
  const destination = await openDestination(run.spec, onFault);
  try {
    return await work(destination);
  } finally {
    destination.close();
  }
}
