import type { Destination, DestinationError } from '../destination/destination.ts';
import type { ExistingRun } from '../domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';

/** Opens the run's destination for one activity. The destination's errors go to the export's log, one line for each type. */
export async function withDestination<Result>(
  { recorder, openDestination, logger }: Pick<ExportDependencies, 'recorder' | 'openDestination' | 'logger'>,
  runId: string,
  run: ExistingRun,
  work: (destination: Destination) => Promise<Result>,
): Promise<Result> {
  const logged = new Set<string>();
  const onError = ({ type, message, transient }: DestinationError): void => {
    if (logged.has(type)) return;
    logged.add(type);
    recorder
      .log(run, runId, 'WARNING', transient ? `${message} Trying again.` : message)
      .catch(() => logger.warn({ run_id: runId }, "A line of an export's log could not be written."));
  };
  const destination = await openDestination(run.spec, onError);
  try {
    return await work(destination);
  } finally {
    destination.close();
  }
}
