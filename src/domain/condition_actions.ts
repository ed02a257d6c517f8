/** What a person can do about what is wrong with an export. */
import type { ConditionCause } from './condition_causes.ts';
import type { AffectedIntervals, ConditionFacts } from './condition_facts.ts';
import { time } from './condition_summary.ts';

/** An operation of the API that cures a condition, or shows what a person has to decide. */
export interface ConditionAction {
  /** A verb: `Retry`. */
  readonly label: string;
  /** `GET`: it changes nothing, and shows what a decision is about. */
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The same on the command line. */
  readonly command: string;
}

/** Actions of single intervals are listed for so many. */
const maxActions = 3;

export function actionsOf(cause: ConditionCause, facts: ConditionFacts): ConditionAction[] {
  const { id, team_id, failed, held, holes, differing } = facts;
  const project = `/api/projects/${team_id}/batch_exports/`;
  const path = (operation: string): string => `${project}${id}/${operation}/`;
  const retryFailed: ConditionAction = {
    label: 'Retry all failed',
    method: 'POST',
    path: `${project}retry_failed/`,
    body: { batch_export: id },
    command: `exportd export retry ${id} --failed`,
  };
  const unpause = (backfill: boolean): ConditionAction => ({
    label: backfill ? 'Unpause and fill' : 'Unpause',
    method: 'POST',
    path: path('unpause'),
    body: backfill ? { backfill: true } : {},
    command: `exportd export unpause ${id}${backfill ? ' --backfill' : ''}`,
  });
  /** Retries of the newest of these intervals. */
  const retries = ({ ranges }: AffectedIntervals): ConditionAction[] =>
    ranges.slice(0, maxActions).flatMap(({ start, run_id }) =>
      run_id === null
        ? []
        : {
            label: `Retry ${time(start)}`,
            method: 'POST',
            path: path(`runs/${run_id}/retry`),
            body: {},
            command: `exportd export retry ${id} ${run_id}`,
          },
    );
  /** What a person decides about the newest of these intervals. */
  const decisions = ({ ranges }: AffectedIntervals): ConditionAction[] =>
    ranges.slice(0, maxActions).map(({ start }) => ({
      label: `Keep or remove rows of ${time(start)}`,
      method: 'GET',
      path: path(`intervals/${start}/difference`),
      body: {},
      command: `exportd export difference ${id} ${start}`,
    }));
  const retryAll = (): ConditionAction[] => [
    ...(failed.intervals > failed.ended_by_person.intervals ? [retryFailed] : []),
    ...retries(failed.ended_by_person),
  ];
  switch (cause) {
    case 'paused_by_failures':
      return [unpause(true), ...retryAll()];
    case 'paused':
      return [unpause(false), unpause(true)];
    case 'access_denied':
    case 'failed':
      return retryAll();
    case 'held':
      return decisions(held);
    case 'differs':
      return decisions(differing);
    case 'table_changed':
      return [
        {
          label: 'Repair the table',
          method: 'POST',
          path: path('table/repair'),
          body: {},
          command: `exportd table repair ${id}`,
        },
      ];
    case 'holes':
      return holes.ranges.slice(0, maxActions).map(({ start, end }) => ({
        label: `Backfill from ${time(start)}`,
        method: 'POST',
        path: path('backfill'),
        body: { start_at: start, end_at: end },
        command: `exportd export backfill ${id} --start-at ${start} --end-at ${end}`,
      }));
    default:
      return [];
  }
}
