import type { AnsweredRequest } from './clients.ts';

/** A command as it was decided, with how many events it led to in the streams of exports and of backfills. */
export interface DecidedCommand {
  readonly id: string;
  readonly name: string;
  readonly idempotency_key: string | null;
  readonly status: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly pauses: number;
  readonly backfills: number;
}

/** Answers that contradict what is stored: a repeat that was answered otherwise, a key with other than one command. */
export function unkeptKeys(
  answers: readonly AnsweredRequest[],
  commands: readonly DecidedCommand[],
): string[] {
  // What came of a command is not shown any more when its export is deleted before the answer is made.
  const isDeleted = commands.some(({ name, status }) => name === 'delete' && status === 'applied');
  const shown = answers.filter(({ status }) => !(isDeleted && status === 404));
  const byKey = Map.groupBy(shown, ({ key }) => key);
  return [...byKey].flatMap(([key, same]) => {
    const [first] = same;
    if (!first) return [];
    const stored = commands.filter(({ idempotency_key }) => idempotency_key === key);
    const accepted = first.status < 300;
    const faults = [
      same.every(({ status }) => status === first.status) || !accepted
        ? ''
        : `was answered ${same.map(({ status }) => status).join(' and ')}`,
      same.every(({ location }) => location === first.location) || !accepted ? '' : 'started two things',
      !accepted || stored.length === 1 ? '' : `is stored ${stored.length} times`,
      !accepted || stored.every(({ status }) => status === 'applied' || status === 'no-op')
        ? ''
        : `was answered ${first.status} and is ${stored[0]?.status}`,
    ].filter((fault) => fault !== '');
    return faults.map((fault) => `${first.name} ${key} ${fault}`);
  });
}

const starters = ['backfill', 'retry'];

/** What the simplest of models says of an export's commands, in the order of their decision. */
export function unexpectedOutcomes(commands: readonly DecidedCommand[], paused: boolean): string[] {
  const state = { paused, deleted: false };
  return commands.flatMap(({ name, status, pauses, backfills, body, id }) => {
    let expected: string | undefined;
    let changes = 0;
    if (name === 'pause' || name === 'unpause') {
      const wanted = name === 'pause';
      expected = state.deleted ? 'rejected' : state.paused === wanted ? 'no-op' : 'applied';
      // Unpausing fails as a whole when its backfill may not be, and only then.
      if (expected === 'applied' && status === 'rejected' && body.backfill === true) expected = 'rejected';
      else if (!state.deleted) state.paused = wanted;
      changes = expected === 'applied' ? 1 : 0;
    } else if (name === 'delete') {
      expected = state.deleted ? 'no-op' : 'applied';
      state.deleted = true;
    } else if (state.deleted) {
      expected = 'rejected';
    }
    const faults = [
      expected === undefined || expected === status ? '' : `is ${status} instead of ${expected}`,
      pauses === changes ? '' : `changed the pause ${pauses} times instead of ${changes}`,
      starters.includes(name) && backfills !== (status === 'applied' ? 1 : 0)
        ? `is ${status} and started ${backfills} backfills`
        : '',
    ].filter((fault) => fault !== '');
    return faults.map((fault) => `${name} ${id} ${fault}`);
  });
}

/** A run as GET shows it. */
export interface CreatedRun {
  readonly id: string;
  readonly backfill_id: string | null;
  readonly created_at: string;
  readonly status: string;
}

/**
 * Scheduled runs that were made after a client had its answer to a pause, and before anybody asked to unpause again. Of
 * an unpause that was under way at the same time as the pause, nobody can say which came first.
 */
export function runsAfterPause(answers: readonly AnsweredRequest[], runs: readonly CreatedRun[]): string[] {
  const unpauses = answers.filter(({ name }) => name === 'unpause' || name === 'unpauseWithBackfill');
  const pauses = answers.filter(({ name, status }) => name === 'pause' && status === 200);
  const last = Math.max(...answers.map(({ answered_at }) => answered_at));
  // The second answer under a key tells what the first one told, which may be over by then.
  return [...Map.groupBy(pauses, ({ key }) => key).values()].flatMap((same) => {
    const since = Math.min(...same.map(({ answered_at }) => answered_at));
    const asked = Math.min(...same.map(({ sent_at }) => sent_at));
    const later = unpauses.filter(({ answered_at }) => answered_at >= asked);
    const until = Math.min(last, ...later.map(({ sent_at }) => sent_at));
    return runs
      .filter(({ backfill_id, created_at }) => {
        const at = new Date(created_at).getTime();
        return backfill_id === null && at > since && at < until;
      })
      .map(({ id, created_at }) => `run ${id} was made at ${created_at}, after a pause was answered`);
  });
}

/** Runs whose cancellation was answered 200 and that are not Cancelled. */
export function uncancelled(answers: readonly AnsweredRequest[], runs: readonly CreatedRun[]): string[] {
  return answers
    .filter(({ name, status }) => name === 'cancelRun' && status === 200)
    .flatMap(({ subject }) => runs.filter(({ id, status }) => id === subject && status !== 'Cancelled'))
    .map(({ id, status }) => `run ${id} is ${status} though its cancellation was answered`);
}
