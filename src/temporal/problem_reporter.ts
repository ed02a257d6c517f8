import { setTimeout as wait } from 'node:timers/promises';
import { SettingsError } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { storeProcessFault } from '../failures/operator_faults.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { ConnectionSettings } from './connection_options.ts';
import { describeProblem, type TemporalProblem } from './problems.ts';

/** Reports why a process cannot work with Temporal. */
export interface ProblemReporter {
  /** Runs `work` once, and reports its error before throwing it. */
  watch<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Repeats `work` until it succeeds.
   * @throws SettingsError when a certificate cannot be read, and the signal's reason when it is aborted
   */
  retry<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

const initialDelayMs = 500;
const maxDelayMs = 5_000;
/** A problem that lasts is logged again after this time. */
const repeatedLogMs = 300_000;

/**
 * Creates the reporter of a process. A problem is one line of the log, however often a request fails; the operator's are
 * an alarm too.
 */
export function createProblemReporter(
  pool: Pool,
  settings: ConnectionSettings,
  logger: Logger,
): ProblemReporter {
  let latest: { readonly message: string; readonly loggedAt: number } | undefined;
  const where = {
    temporal_address: settings.TEMPORAL_ADDRESS,
    temporal_namespace: settings.TEMPORAL_NAMESPACE,
  };

  const log = ({ type, message, owner }: TemporalProblem, error: unknown): void => {
    if (latest?.message === message && performance.now() < latest.loggedAt + repeatedLogMs) return;
    latest = { message, loggedAt: performance.now() };
    const detail = Error.isError(error) ? error.message : String(error);
    if (owner === 'operator') logger.error({ operator_fault: type, ...where, detail }, message);
    else logger.warn({ problem: type, ...where, detail }, message);
  };
  const report = async (error: unknown): Promise<void> => {
    if (error instanceof SettingsError) return;
    const problem = await describeProblem(error, settings);
    log(problem, error);
    if (problem.owner !== 'operator') return;
    await storeProcessFault(pool, problem).catch((err: unknown) =>
      logger.warn({ err }, "An operator's fault could not be stored. Trying again."),
    );
  };
  const watch: ProblemReporter['watch'] = async (work) => {
    try {
      const result = await work();
      if (latest) logger.info(where, 'Temporal works again.');
      latest = undefined;
      return result;
    } catch (error) {
      await report(error);
      throw error;
    }
  };
  return {
    watch,
    retry: async (work, signal) => {
      for (let delayMs = initialDelayMs; ; delayMs = Math.min(delayMs * 2, maxDelayMs)) {
        signal.throwIfAborted();
        try {
          return await watch(work);
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof SettingsError) throw error;
          await wait(delayMs, undefined, { signal });
        }
      }
    },
  };
}
