import type { RequestResult } from './clients.ts';

/** A decided command, with the number of events it caused in the streams of exports and of backfills. */
export interface DecidedCommand {
  readonly id: string;
  readonly name: string;
  readonly idempotency_key: string | null;
  readonly status: string;
  /** Why it was rejected; null if it was not. */
  readonly code: string | null;
  readonly body: Readonly<Record<string, unknown>>;
  readonly pauses: number;
  readonly backfills: number;
}

/** Responses that contradict the stored commands: different responses to a repeat, or not exactly one command per key. */
export function brokenIdempotencyKeys(
  results: readonly RequestResult[],
  commands: readonly DecidedCommand[],
): string[] {
  // The outcome of a command is no longer visible if its export is deleted before the response.
  const isDeleted = commands.some(({ name, status }) => name === 'delete' && status === 'applied');
  const visible = results.filter(({ status }) => !(isDeleted && status === 404));
  const byKey = Map.groupBy(visible, ({ key }) => key);
  return [...byKey].flatMap(([key, same]) => {
    const [first] = same;
    if (!first) return [];
    const stored = commands.filter(({ idempotency_key }) => idempotency_key === key);
    const accepted = first.status < 300;
    const violations = [
      same.every(({ status }) => status === first.status) || !accepted
        ? ''
        : `got the responses ${same.map(({ status }) => status).join(' and ')}`,
      same.every(({ location }) => location === first.location) || !accepted ? '' : 'created two resources',
      !accepted || stored.length === 1 ? '' : `is stored ${stored.length} times`,
      !accepted || stored.every(({ status }) => status === 'applied' || status === 'no-op')
        ? ''
        : `got the response ${first.status} and is ${stored[0]?.status}`,
    ].filter((violation) => violation !== '');
    return violations.map((violation) => `${first.name} ${key} ${violation}`);
  });
}

const backfillCommands = ['backfill', 'retry'];

/** Compares the commands of an export, in the order of their decision, with a reference model. */
export function unexpectedOutcomes(commands: readonly DecidedCommand[], paused: boolean): string[] {
  const state = { paused, deleted: false };
  return commands.flatMap(({ name, status, code, pauses, backfills, body, id }) => {
    let expected: string | undefined;
    let changes = 0;
    if (name === 'pause' || name === 'unpause') {
      const isPause = name === 'pause';
      expected = state.deleted ? 'rejected' : state.paused === isPause ? 'no-op' : 'applied';
      // Unpausing is rejected as a whole if its backfill is, and only then.
      if (expected === 'applied' && status === 'rejected' && body.backfill === true) expected = 'rejected';
      else if (!state.deleted) state.paused = isPause;
      changes = expected === 'applied' ? 1 : 0;
    } else if (name === 'delete') {
      expected = state.deleted ? 'no-op' : 'applied';
      state.deleted = true;
    } else if (state.deleted) {
      expected = 'rejected';
    }
    const violations = [
      expected === undefined || expected === status ? '' : `is ${status} instead of ${expected}`,
      code === 'internal_error' ? 'was rejected because of an unexpected error' : '',
      pauses === changes ? '' : `changed the pause ${pauses} times instead of ${changes}`,
      backfillCommands.includes(name) && backfills !== (status === 'applied' ? 1 : 0)
        ? `is ${status} and started ${backfills} backfills`
        : '',
    ].filter((violation) => violation !== '');
    return violations.map((violation) => `${name} ${id} ${violation}`);
  });
}

/** A run as returned by GET. */
interface CreatedRun {
  readonly id: string;
  readonly backfill_id: string | null;
  readonly created_at: string;
  readonly status: string;
}

/**
 * Scheduled runs that were created after the response to a pause and before the next request to unpause. The order of a
 * pause and a concurrent unpause is unknown.
 */
export function runsAfterPause(results: readonly RequestResult[], runs: readonly CreatedRun[]): string[] {
  const unpauses = results.filter(({ name }) => name === 'unpause' || name === 'unpauseWithBackfill');
  const pauses = results.filter(({ name, status }) => name === 'pause' && status === 200);
  const last = Math.max(...results.map(({ received_at }) => received_at));
  // The second response to a key repeats the first one, which may be outdated by then.
  return [...Map.groupBy(pauses, ({ key }) => key).values()].flatMap((same) => {
    const pausedAt = Math.min(...same.map(({ received_at }) => received_at));
    const firstSentAt = Math.min(...same.map(({ sent_at }) => sent_at));
    const later = unpauses.filter(({ received_at }) => received_at >= firstSentAt);
    const until = Math.min(last, ...later.map(({ sent_at }) => sent_at));
    return runs
      .filter(({ backfill_id, created_at }) => {
        const at = new Date(created_at).getTime();
        return backfill_id === null && at > pausedAt && at < until;
      })
      .map(({ id, created_at }) => `run ${id} was created at ${created_at}, after the response to a pause`);
  });
}

/** Runs that are not Cancelled although the response to their cancellation was 200. */
export function notCancelledRuns(results: readonly RequestResult[], runs: readonly CreatedRun[]): string[] {
  return results
    .filter(({ name, status }) => name === 'cancelRun' && status === 200)
    .flatMap(({ target_id }) => runs.filter(({ id, status }) => id === target_id && status !== 'Cancelled'))
    .map(({ id, status }) => `run ${id} is ${status} although its cancellation succeeded`);
}
